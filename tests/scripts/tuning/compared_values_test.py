"""What two builds of a network are compared by: values, also where the outputs are integers."""

import json
import subprocess
import textwrap

import numpy as np
import pytest

from run_model_tools import environment
from run_model_tools.inside_tvm.tuning import compared_values


def test_values_may_differ_by_rounding_only():
    ones = [np.ones((2, 3), np.float32)]
    compared_values.check([ones[0] * 1.0005], ones, 1e-3)
    for other in (1.01, np.nan):
        with pytest.raises(compared_values.Departure):
            compared_values.check([ones[0] * other], ones, 1e-3)


def test_integers_that_stand_for_themselves_have_to_be_equal():
    small = np.array([0, 1, 2], np.uint8)
    compared_values.check([small], [small], 1e-3)
    with pytest.raises(compared_values.Departure, match="by 1 where"):
        # 0 - 1 is 255 in uint8.
        compared_values.check([np.array([1, 1, 2], np.uint8)], [small], 1e-3)


CASES = """
x = relay.var("x", shape=(1, 4, 3, 3))
k = relay.var("k", shape=(1, 4, 3, 3), dtype="int32")
scores = relay.nn.relu(x)
best = relay.cast(relay.argmax(scores, axis=1), "uint8")
show("values", scores)
show("the best class", best)
show("both", relay.Tuple([scores, best]))
show("larger of two", relay.cast(relay.greater(relay.exp(x), scores), "int8"))
show("indices of the best", relay.topk(scores, k=2, axis=1, dtype="int64", ret_type="indices"))
show("of an input", relay.cast(relay.argmax(x, axis=1), "uint8"))
show("integers", relay.argmax(k + relay.const(1), axis=1))
show("an integer beside a value", relay.cast(relay.argmax(scores, axis=1), "int32") + relay.sum(k))
"""

EXPECTED = {
    "values": None, "the best class": ["nn.relu"], "both": ["nn.relu", "nn.relu"],
    "larger of two": ["nn.relu", "exp"], "indices of the best": ["nn.relu"],
    # The integers themselves: inputs are the same in both builds.
    "of an input": None, "integers": None, "an integer beside a value": None,
}


def test_the_values_behind_integers_are_found():
    program = textwrap.dedent("""
        import json, tvm
        from tvm import relay
        from run_model_tools.inside_tvm.tuning import compared_values
        found = {}
        def show(name, body):
            mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
            mod = relay.transform.InferType()(mod)
            made = compared_values.with_values(tvm, mod)
            same = made is mod
            body = made["main"].body
            fields = list(body.fields) if isinstance(body, relay.Tuple) else [body]
            found[name] = None if same else [field.op.name for field in fields]
        """) + CASES + "print(json.dumps(found))\n"
    done = subprocess.run([environment.VENV_PYTHON, "-c", program], capture_output=True, text=True,
                          env=environment.tvm_environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == EXPECTED
