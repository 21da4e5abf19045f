"""TVM's target strings, which it does not read any more itself."""

import shlex

from run_model_tools.inside_tvm import Refusal

_LISTS = ("mattr", "keys", "libs")


def make_target(tvm, text):
    """The target of a string such as "llvm -mcpu=skylake -mattr=+avx2,+fma", or of JSON."""
    try:
        if text.lstrip().startswith("{"):
            return tvm.target.Target(text)
        kind, *options = shlex.split(text)
        attributes = {"kind": kind}
        for option in options:
            name, equals, value = option.lstrip("-").partition("=")
            if not option.startswith("-") or not equals:
                raise Refusal("target", "'%s' is not of the form -NAME=VALUE" % option)
            attributes[name] = value.split(",") if name in _LISTS else value
        return tvm.target.Target(attributes)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("target", str(error).strip().splitlines()[-1]) from error
