"""Makes a model that costs nothing but its calls: `PYTHON compile_chain.py CALLS MODEL.so`.

Runs inside today's TVM.  Each call adds to the one number that the call before has given.
"""

import sys

import tvm
from tvm import relax, te


def one_more(x):
    return te.compute(x.shape, lambda i: x[i] + tvm.tirx.const(1, "float32"), name="one_more")


def main():
    calls, path = int(sys.argv[1]), sys.argv[2]
    builder = relax.BlockBuilder()
    value = relax.Var("x", relax.TensorType((1,), "float32"))
    with builder.function("main", [value]):
        with builder.dataflow():
            for _ in range(calls):
                value = builder.emit_te(one_more, value)
            value = builder.emit_output(value)
        builder.emit_func_output(value)
    executable = relax.build(builder.get(), tvm.target.Target("llvm"),
                             relax_pipeline=relax.get_pipeline("default_build"))
    executable.export_library(path)


if __name__ == "__main__":
    main()
