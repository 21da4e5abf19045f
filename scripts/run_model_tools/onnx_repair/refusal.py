"""Why a model is not taken: one sentence about one of its nodes, before TVM sees anything."""

from __future__ import annotations

from collections.abc import Mapping

from run_model_tools.errors import MALFORMED_FILE, ToolError

DATA_DEPENDENT, RUN_TIME = "data-dependent shape", "run-time parameter"


class Refused(Exception):
    """What stands in the way at the node at work; walk.py says which node that is.

    `advice` says what to do about it, where that is not to export the network otherwise.
    """

    def __init__(self, reason: str, advice: str | None = None, kind: str = "operator") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.kind = kind
        """For lists of what is refused: operator, type, data-dependent, random ..."""
        self.value = ""
        """The value that would have to be known, if it is that (not_constant())."""

    def behind(self, inputs: list[str], all_of_them: bool) -> Refused:
        """This refusal where that value is computed of these inputs of the model: they can be
        frozen in its place, unless nothing would be left to compute."""
        advice = "make it a constant of the model."
        if not all_of_them:
            advice = (f"it is computed of {' and '.join(map(repr, inputs))}: make that a constant "
                      f"with {' '.join(f'--freeze {name}=NUMBER,...' for name in inputs)} (or "
                      "=FILE.npy).")
        return Refused(self.reason, advice, self.kind)


class NodeRefused(ToolError):
    """The sentence for the user, with what it was made of."""

    def __init__(self, path: str, op: str, domain: str, opset: int, node: str,
                 refused: Refused) -> None:
        where = f"node '{node}'" if node else "a node without a name"
        operator = f"{domain}.{op}" if domain else op
        super().__init__(MALFORMED_FILE, (
            f"{path} cannot be compiled: {where} ({operator}, opset {opset}): {refused.reason}; "
            f"{refused.advice or 'export the network without it.'}"))
        self.op = op
        self.kind = refused.kind
        self.reason = f"{where} ({operator}, opset {opset}): {refused.reason}"
        self._parts = (path, op, domain, opset, node, refused)

    def up_to(self, tensors: list[str], nodes: int, of: int) -> NodeRefused:
        """This refusal with the advice to compile the network up to these tensors."""
        refused = self._parts[-1]
        advice = (f"with --outputs {','.join(tensors)} the network is compiled up to there, "
                  f"{nodes} of its {of} nodes, and the rest is for the program.")
        if refused.kind != DATA_DEPENDENT and refused.advice:
            advice = f"{refused.advice.rstrip('.')}; or {advice}"
        return NodeRefused(*self._parts[:-1], Refused(refused.reason, advice, refused.kind))

    def with_extents(self, given: Mapping[str, tuple[int, ...]]) -> NodeRefused:
        """This refusal of a model that left these inputs' extents open, and may be valid with
        others."""
        refused = self._parts[-1]
        taken = " and ".join(f"'{name}' as {list(shape)}" for name, shape in given.items())
        advice = (f"the model was taken with {taken}, whose extents it leaves open: give others "
                  f"with {' '.join(f'--shape {name}:D0,D1,...' for name in given)}; or "
                  f"{refused.advice or 'export it otherwise.'}")
        return NodeRefused(*self._parts[:-1], Refused(refused.reason, advice, refused.kind))

    def in_branch(self, inputs: list[str]) -> NodeRefused:
        """This refusal where the node is in a branch of an If that these inputs decide about."""
        refused = self._parts[-1]
        which = " ".join(f"--freeze {name}=NUMBER" for name in inputs)
        advice = (f"it lies in a branch that {' and '.join(map(repr, inputs))} may choose: with "
                  f"{which} only the branch that is then taken is compiled.")
        if refused.advice and refused.kind != "invalid":
            advice = f"{refused.advice.rstrip('.')}; or, as {advice}"
        return NodeRefused(*self._parts[:-1], Refused(refused.reason, advice, refused.kind))


def not_constant(what: str, name: str) -> Refused:
    """For a parameter that decides shapes or forms, which is computed at run time."""
    made = Refused(
        f"{what} ('{name}') is known at run time only, and compiled code needs it beforehand",
        "make it a constant of the model, or if it is an input name its value with "
        f"--freeze {name}=NUMBER,... or --freeze {name}=FILE.npy.", RUN_TIME)
    made.value = name
    return made


def invalid(reason: str) -> Refused:
    """For a file that is no ONNX model."""
    return Refused(reason, "the model is not valid: look at what exported it.", "invalid")


def data_dependent(what: str) -> Refused:
    """For results whose shapes depend on values."""
    return Refused(
        f"{what} depends on the values of its input, and compiled code needs every shape "
        "beforehand",
        "end the network before it (compile_model --outputs) and do the rest in the program.",
        DATA_DEPENDENT)
