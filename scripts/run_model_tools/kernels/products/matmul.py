"""Products of matrices with what is done to the result (c/f32-gemm.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from run_model_tools.few_bits import CHUNK
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.parts import Units, best_parts, rounded
from run_model_tools.kernels.products import tiled_matmul
from run_model_tools.kernels.products.compact_weights import CompactWeights, compact
from run_model_tools.kernels.programs import tables
from run_model_tools.kernels.programs.code import (
    Operand,
    Sources,
    expression,
    load,
    operand,
    place,
)
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.tiles import (
    Even,
    best_tiles,
    bfloat16_bits,
    packed_weights,
    vectors,
)
from run_model_tools.kernels.views import Axis, View, common_factors

_GROUP_BYTES = 384 << 10
"""Of the second-level cache, what the packed columns of a group may take."""

_FEW_ROW_TILES = 8
_MANY_WEIGHTS = 256 << 10
"""Weights of so many bytes come from far away for every product; that takes as long as multiplying
so many tiles of rows with them, or a good part of it."""

_TASK = 250_000
"""Multiply-adds that are worth a task of their own."""


@dataclass(frozen=True, eq=False)
class Product:
    """output[b, r, c] = epilogue(scale * sum of left[b, r, k] * right[b, k, c])."""

    left: View
    """(batch, rows, depth)"""
    right: View | np.ndarray
    """(batch, depth, columns), or weights (depth, columns), which are for one batch only."""
    scale: float = 1.0
    epilogue: Program | None = None
    """Of shape (batch * rows, columns); its node "product" is the scaled sum."""
    is_whole: bool = False
    """Whether the left matrix and the weights are whole numbers that int16 has, and int32 all sums
    of their products."""
    is_bytes: bool = False
    """Whether besides the numbers of the left matrix lie within 255 of each other, signed bytes
    have the weights, and int32 all sums of products with numbers 255 farther from zero."""
    left_low: int | None = None
    """With bytes: what no number of the left matrix is below, and 255 more what none is above;
    None where only the numbers show it."""
    _compact: dict[str, tuple[np.ndarray, CompactWeights | None]] = field(
        default_factory=dict, repr=False)
    """By instruction set, the weights that compact_weights() looked at, and what it found."""

    def compact_weights(self, isa: Isa) -> CompactWeights | None:
        """The weights in fewer bits, where float32 numbers are multiplied."""
        if self.is_whole or isa.bfloat16 or isinstance(self.right, View):
            return None
        seen, found = self._compact.get(isa.name, (None, None))
        if seen is not self.right:
            found = compact(self.right, isa)
            self._compact[isa.name] = self.right, found
        return found

    @property
    def shape(self) -> tuple[int, int, int]:
        """(batch, rows, columns)"""
        batch, rows, _ = self.left.shape
        return batch, rows, self.right.shape[-1]

    @property
    def depth(self) -> int:
        return self.left.shape[2]

    @property
    def multiply_adds(self) -> int:
        return math.prod(self.shape) * self.depth

    def sources(self) -> Sources:
        """What a layer of it reads besides packed weights."""
        views = [self.left]
        if isinstance(self.right, View):
            views.append(self.right)
        return Sources.of(views + (self.epilogue.inputs if self.epilogue else []))


def inputs_of(product: Product) -> list[Tensor]:
    """The tensors that a step with the product reads."""
    return product.sources().inputs


def can_take_in(product: Product, program: Program) -> bool:
    """Whether `program`, of the right shape, can be done to the result on the way."""
    batch, rows, columns = product.shape
    if program.reduces or program.shape != (batch * rows, columns):
        return False
    return all(_operand_kind(view.axes[-1]) for view in program.inputs)


def _operand_kind(axis: Axis) -> bool:
    factors = common_factors([axis]) or []
    return not factors or len(factors) == 1 and factors[0][1][0] in (0, 1)


def options(product: Product, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [rows, vectors], in how many
    parts the [rows, columns] of a batch are cut, and whether AMX's tiles make the products."""
    batch, rows, columns = product.shape
    if min(batch, rows, columns, product.depth) < 1:
        return []
    count = vectors(columns, isa)
    found: list[dict] = []
    found += [{"tile": [tiled_matmul.ROWS, min(tiled_matmul.VECTORS, count)],
               "parts": list(parts), "amx": True} for parts in _parts_of_tiles(product, isa)]
    for tile in best_tiles(isa, rows, count):
        found += [{"tile": list(tile), "parts": list(parts)}
                  for parts in _parts(product, isa, tile)[:3]]
    return found


def make(product: Product, isa: Isa, tile: list[int], parts: list[int], amx: bool = False) -> Layer:
    """A layer with these parameters; its inputs are inputs_of()."""
    batch, rows, columns = product.shape
    form = _Form.of(product, isa, tile, parts, amx)
    sources = product.sources()
    constants = list(sources.constants)
    units = batch * parts[0] * parts[1]
    tasks = units if batch == 1 else max(1, min(units, 16, product.multiply_adds // _TASK))
    left = _left(product, sources, isa.lanes, form.in_word > 1)
    scratch = 0
    if "LEFT_STRIDE" not in left:
        # Of an odd number of rows AMX's two tiles read one more.
        scratch = -(-(form.rows.largest + amx) * form.words // isa.lanes) * isa.lanes
    right, right_scratch = _right_side(form, sources, constants, scratch)
    defines: dict[str, object] = {
        **(isa.dot_defines() if form.number == "int8" else isa.defines()),
        **form.rows.defines("ROW", "ROWS"), **form.vectors.defines("VECTOR", "VECTORS"),
        "BATCH": batch, "ROWS": rows, "DEPTH": product.depth, "COLUMNS": columns, "PARTS": tasks,
        "ROW_PARTS": parts[0], "VECTOR_PARTS": parts[1], "GROUP": form.group, **left,
        **(form.sizes.defines(form.rows.largest) if amx else {}), **right,
        **_number_defines(form, constants), **_epilogue(product, sources, isa.lanes, constants)}
    by = {"float32": "", "bfloat16": "bf16", "int16": "pairs",
          "int8": "" if amx else isa.dot or ""}[form.number] + ("amx" if amx else "")
    note = {"kernel": "matmul", "tile": list(tile), "parts": list(parts),
            "multiply_adds": product.multiply_adds}
    if form.weights is not None:
        by, note["weights"] = form.weights.variant, form.weights.kind
    return Layer("matmul_bf16" if form.number == "bfloat16" else "matmul", "f32-gemm.c.in", defines,
                 (Phase("gemm", tasks),),
                 tuple((t.shape, "float32") for t in sources.inputs), tuple(constants),
                 product.shape, scratch_bytes=4 * (scratch + right_scratch),
                 variant=isa.variant(*tile) + by, note=note)


_BYTES = {"float32": 4, "bfloat16": 2, "int16": 2, "int8": 1}
"""Of the numbers that are multiplied."""


def _number(product: Product, isa: Isa, amx: bool) -> str:
    """Of _BYTES, what is multiplied; `amx`: where tiles make the products."""
    if product.is_bytes and isa.dot:
        return "int8"
    if product.is_whole and isa.multiplies_pairs:
        return "int16"
    return "bfloat16" if amx and isa.bfloat16 else "float32"


@dataclass(frozen=True)
class _Form:
    """How a product is computed."""

    product: Product
    isa: Isa
    number: str
    """Of _BYTES."""
    amx: bool
    sizes: tiled_matmul.Sizes
    weights: CompactWeights | None
    """Those of fewer bits."""
    rows: Even
    vectors: Even
    """Of both sides, the tiles."""
    row_parts: int
    words: int
    """Of 4 bytes, how many the sum over the depth takes of a row and of a column."""

    @classmethod
    def of(cls, product: Product, isa: Isa, tile: list[int], parts: list[int], amx: bool) -> _Form:
        _, rows, columns = product.shape
        number = _number(product, isa, amx)
        sizes = tiled_matmul.Sizes(rows, product.depth, columns, _BYTES[number])
        weights = None if amx else product.compact_weights(isa)
        words = sizes.words if amx else -(-product.depth * _BYTES[number] // 4)
        if weights is not None:
            words = -(-product.depth // CHUNK) * CHUNK  # that are made float32
        return cls(product, isa, number, amx, sizes, weights, *_tiles(product, isa, tile, parts),
                   parts[0], words)

    @property
    def in_word(self) -> int:
        """Numbers."""
        return 4 // _BYTES[self.number]

    @property
    def is_whole(self) -> bool:
        return self.number in ("int8", "int16")

    @property
    def tile_bytes(self) -> int:
        """Of the columns of a tile, packed."""
        count = vectors(self.product.shape[-1], self.isa)
        return self.words * -(-count // self.vectors.tiles) * self.isa.lanes * 4

    @property
    def group(self) -> int:
        """Tiles of columns, whose packed numbers stay in the cache while rows are multiplied."""
        return max(1, min(self.vectors.tiles, _GROUP_BYTES // self.tile_bytes))


def _right_side(form: _Form, sources: Sources, constants: list[np.ndarray],
                begin: int) -> tuple[dict[str, object], int]:
    """The macros of the right side, whose weights become constants, and how many float32 numbers it
    needs of the scratch memory, from `begin` on."""
    product, lanes = form.product, form.isa.lanes
    of_group = form.group * form.tile_bytes // 4
    if isinstance(product.right, View):
        return _right(product.right, sources, lanes) | {"LEFT_SCRATCH": begin}, of_group
    place_of = f"constants[{len(constants)}]"
    if form.weights is not None:
        defines = form.weights.defines() | {"WEIGHTS": f"((const unsigned char *){place_of})"}
        constants.append(form.weights.packed(form.vectors.spread(), lanes))
        if form.rows.tiles > form.row_parts:
            # All rows of tiles read what is made float32 once.
            return defines | {"LEFT_SCRATCH": begin}, of_group
        return defines | {"UNPACKS_CHUNKS": 1}, 0
    packed = _packed_weights(product, form.vectors, lanes, form.number, form.words)
    constants.append(packed)
    defines = {"WEIGHTS": f"((const float *){place_of})"}
    share = -(-form.rows.tiles // form.row_parts)
    if (lanes >= 8 and share <= _FEW_ROW_TILES and packed.nbytes >= _MANY_WEIGHTS
            and not form.amx):
        defines["AHEAD"] = share
    return defines, 0


def _number_defines(form: _Form, constants: list[np.ndarray]) -> dict[str, object]:
    """The macros of what is multiplied, and by what the sums are; of bytes, those of the columns
    become a constant."""
    product = form.product
    defines: dict[str, object] = {}
    if form.number == "bfloat16":
        defines["BFLOAT16"] = 1
    if form.is_whole:
        defines["WHOLE"] = form.in_word
    if form.number == "int8":
        assert isinstance(product.right, np.ndarray)
        defines["COLUMN_SUMS"] = f"((const int *)constants[{len(constants)}])"
        sums = product.right.sum(0, dtype=np.float64).astype(np.int32)
        constants.append(np.pad(sums, (0, -len(sums) % form.isa.lanes)))
        if product.left_low is not None:
            defines["LEFT_LOW"] = float(product.left_low)
    # Other weights are packed scaled.
    if product.scale != 1 and (form.is_whole or form.weights is not None
                               or isinstance(product.right, View)):
        defines["SCALE"] = float(product.scale)
    return defines


def _packed_weights(product: Product, tiles: Even, lanes: int, number: str,
                    words: int) -> np.ndarray:
    """[tile][word][column][number of a word]; those of no whole numbers are scaled."""
    right = product.right
    assert isinstance(right, np.ndarray)
    if number in ("float32", "bfloat16"):
        right = right * np.float32(product.scale)
    if number == "bfloat16":
        right = bfloat16_bits(right)
    in_word = 4 // _BYTES[number]
    right = np.pad(right, [(0, words * in_word - len(right)), (0, 0)])
    depth, columns = right.shape
    weight = right.T.reshape(columns, depth, 1, 1)
    parts = [packed_weights(weight, list(range(depth)), part, lanes) for part in tiles.spread()]
    packed = np.concatenate([
        part.reshape(words, in_word, -1).transpose(0, 2, 1).ravel() for part in parts])
    return packed.astype({"bfloat16": "uint16"}.get(number, number))


def _tiles(product: Product, isa: Isa, tile: list[int] | tuple[int, int],
           parts: list[int]) -> tuple[Even, Even]:
    _, rows, columns = product.shape
    return rounded(rows, tile[0], parts[0]), rounded(vectors(columns, isa), tile[1], parts[1])


def _parts_of_tiles(product: Product, isa: Isa) -> list[tuple[int, int]]:
    """In how many parts the [rows, columns] of a batch are cut, best guess first, where AMX's tiles
    make the products; none where these are not faster."""
    batch, rows, columns = product.shape
    number = _number(product, isa, amx=True)
    if number not in ("int8", "bfloat16"):
        return []
    sizes = tiled_matmul.Sizes(rows, product.depth, columns, _BYTES[number])
    parts = tiled_matmul.parts(sizes, isa)
    if not parts or isinstance(product.right, np.ndarray):
        return parts
    # The right side is packed once for each part of the rows.
    return [(max(1, min(4 // batch, -(-rows // tiled_matmul.ROWS))), 1)]


def _parts(product: Product, isa: Isa, tile: tuple[int, int]) -> list[tuple[int, int]]:
    """In how many parts they are cut where a register tile makes the products."""
    batch, rows, columns = product.shape
    count = vectors(columns, isa)
    units: dict[int, Units] = {}
    columns_: dict[int, list[int]] = {}
    # An activation on the right side is packed once for each part of the rows, and weights of few
    # bits are made float32 once for each.
    most_rows = 16 if batch == 1 else max(1, 4 // batch)
    most_columns = 16 if isinstance(product.right, np.ndarray) else 1
    if most_columns == 1 and batch == 1 or product.compact_weights(isa) is not None:
        most_rows = 4
    for parts in (1, 2, 4, 8, 16):
        if parts <= min(rows, most_rows):
            units[parts] = [(len(r),) for r in rounded(rows, tile[0], parts).spread()]
        if parts <= min(count, most_columns):
            columns_[parts] = [len(r) for r in rounded(count, tile[1], parts).spread()]
    return best_parts(isa, product.multiply_adds, units, columns_)


def _left(product: Product, sources: Sources, lanes: int, in_pairs: bool) -> dict[str, object]:
    view = product.left
    batches, rows, depths = (_single(axis) for axis in view.axes)
    found: dict[str, object] = {
        "LEFT": f"({sources.pointer(view.tensor)} + {view.offset})",
        "LEFT_BATCH": place("batch", batches), "LEFT_ROW": place("row", rows),
        "LEFT_DEPTH": place("k", depths)}
    in_a_row = not depths or len(depths) == 1 and depths[0][1] == 1
    if in_a_row and len(rows) <= 1 and not in_pairs:
        found["LEFT_STRIDE"] = f"{rows[0][1]}L" if rows else "0L"
    elif depths and depths[-1][1] == 1 and (len(depths) == 1 or depths[-1][0] % lanes == 0):
        found["LEFT_VECTORS"] = 1
    return found


def _right(view: View, sources: Sources, lanes: int) -> dict[str, object]:
    batches, depths, columns = (_single(axis) for axis in view.axes)
    found: dict[str, object] = {
        "RIGHT": f"({sources.pointer(view.tensor)} + {view.offset})",
        "RIGHT_BATCH": place("batch", batches), "RIGHT_DEPTH": place("k", depths),
        "RIGHT_COLUMN": place("n", columns)}
    if columns and columns[-1][1] == 1 and (len(columns) == 1 or columns[-1][0] % lanes == 0):
        found["RIGHT_ROWS"] = 1
    elif depths and depths[-1][1] == 1 and (len(depths) == 1 or depths[-1][0] % lanes == 0):
        found["RIGHT_TRANSPOSED"] = 1
    return found


def _single(axis: Axis) -> list[tuple[int, int]]:
    return [(count, strides[0]) for count, strides in common_factors([axis]) or []]


def _epilogue(product: Product, sources: Sources, lanes: int,
              constants: list[np.ndarray]) -> dict[str, object]:
    """The macros; tables become constants."""
    if product.epilogue is None:
        return {}
    program, found = tables.tabulated(product.epilogue)
    macros = tables.defines(found, len(constants))
    constants += [table.numbers for table in found]
    operands: list[Operand] = []
    for view in program.inputs:
        rows, columns = (_single(axis) for axis in view.axes)
        operands.append(operand(view, rows, columns, sources, lanes))
    begin = " ".join(f"const float *p{i} = {o.base} + {o.row};" for i, o in enumerate(operands))
    steps = []
    for index, node in enumerate(program.nodes):
        if node.op == "product":
            value = "product"
        elif node.op == "input":
            which = int(node.value)
            value = (f"splat(*p{which})" if operands[which].kind == "row"
                     else load(operands[which], f"p{which}", "column", "count"))
        else:
            value = expression(node, "n{}".format)
        steps.append(f"const vec n{index} = {value};")
    steps.append(f"const vec value = n{len(program.nodes) - 1};")
    return macros | {"PROGRAM_ROW": begin or ";", "PROGRAM": " ".join(steps)}
