"""Runs a .tflite file in LiteRT, in a process of its own: {"site", "model", "inputs", "outputs"}.

Nothing of run_model_tools is imported, so that its path needs not be known.
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    request = json.loads(sys.argv[1])
    sys.path.insert(0, request["site"])
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    with np.load(request["inputs"]) as file:
        inputs = [file[f"arr_{i}"] for i in range(len(file.files))]
    try:
        # LiteRT's own kernels: those that it takes by default round whole numbers otherwise.
        interpreter = Interpreter(
            request["model"], num_threads=1, experimental_op_resolver_type=(
                OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES))
        details = interpreter.get_input_details()
        for detail, value in zip(details, inputs):
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for detail, value in zip(details, inputs):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    except (RuntimeError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    np.savez(request["outputs"], *outputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
