"""A network on a board, by TVM's own RPC client: run as a program of its own.

  remote_network.py REQUEST.json

The request names the library, the graph, the parameters and the board. "ready" is said when the
network is there; then each line of standard input is INPUT.npz and OUTPUT.npz with a tab between,
and is answered by "done" when the second has been written. What goes wrong is said as "error: ...".
"""

import json
import os
import sys

import numpy as np


def connect(request):
    from tvm import rpc

    host, port, key = request["host"], request["port"], request["key"]
    if request["tracker"]:
        return rpc.connect_tracker(host, port).request(key)
    return rpc.connect(host, port, key)


def load(request):
    from tvm.contrib import graph_executor

    session = connect(request)
    session.upload(request["library"], "model.so")
    library = session.load_module("model.so")
    device = session.cpu(0)
    if request["graph"] is None:
        return session, graph_executor.GraphModule(library["default"](device))
    with open(request["graph"]) as file:
        module = graph_executor.create(file.read(), library, device)
    with open(request["params"], "rb") as file:
        module.load_params(file.read())
    return session, module


def main():
    # What TVM prints goes to standard error; answers are nobody else's.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(text):
        answers.write(text.replace("\n", " ") + "\n")
        answers.flush()

    try:
        with open(sys.argv[1]) as file:
            session, module = load(json.load(file))
        say("ready")
        for line in sys.stdin:
            given, wanted = line.rstrip("\n").split("\t")
            with np.load(given, allow_pickle=False) as arrays:
                for name in arrays.files:
                    module.set_input(name, arrays[name])
            module.run()
            np.savez(wanted, **{"output_%d" % index: module.get_output(index).numpy()
                                for index in range(module.get_num_outputs())})
            say("done")
        del module, session
    except Exception as error:
        lines = [one.strip() for one in str(error).splitlines() if one.strip()]
        named = [one for one in lines if "Error:" in one]
        say("error: " + ((named or lines or [type(error).__name__])[-1]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
