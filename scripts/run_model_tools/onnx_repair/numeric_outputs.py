"""Which of a model's outputs are numbers: classifiers also give texts, dictionaries and lists.

scikit-learn's, XGBoost's and LightGBM's converters end a classifier in the class's name and in a
list of dictionaries from names to probabilities (ZipMap), and one of several things at once in a
list of tensors.  Compiled code has tensors of numbers: of a dictionary's numbers it gives the
tensor, in the order of its keys, of a list each tensor, and texts it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import TensorProto, helper


def numeric_outputs(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """(the tensors to end at instead of the outputs, a sentence about each that is not one).

    Both are empty where all outputs are tensors of numbers, or none is.
    """
    makers = {name: node for node in model.graph.node for name in node.output if name}
    names, notes = [], []
    for value in model.graph.output:
        maker = makers.get(value.name)
        if maker is not None and maker.op_type == "ZipMap" and maker.input[0] in makers:
            names.append(maker.input[0])
            notes.append(f"output '{value.name}', a list of dictionaries, is the tensor "
                         f"'{maker.input[0]}' with a column for each key: "
                         f"{_some([str(key) for key in _keys(maker)])}")
        elif maker is not None and maker.op_type == "SequenceConstruct" and all(
                name in makers for name in maker.input):
            names += maker.input
            notes.append(f"output '{value.name}', a list of tensors, is these: "
                         f"{_some(maker.input)}")
        elif value.type.tensor_type.elem_type == TensorProto.STRING:
            notes.append(f"output '{value.name}' is left out: it holds texts, and compiled code "
                         "has numbers only")
        else:
            names.append(value.name)
    return (list(dict.fromkeys(names)), notes) if notes and names else ([], [])


def _keys(node: onnx.NodeProto) -> list[str | int]:
    for attribute in node.attribute:
        if attribute.name.startswith("classlabels"):
            return [key.decode("utf-8", "replace") if isinstance(key, bytes) else key
                    for key in helper.get_attribute_value(attribute)]
    return []


def _some(keys: Iterable[str], most: int = 20) -> str:
    keys = list(keys)
    return ", ".join(keys[:most]) + (f" and {len(keys) - most} more" if len(keys) > most else "")
