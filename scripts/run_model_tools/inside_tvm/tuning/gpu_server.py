"""A tracker and rpc_server on this machine, until standard input ends: TVM's runtime has no Vulkan
or CUDA, so that a GPU here is measured as a board's is.

Arguments: rpc_server's path, the key. The tracker's HOST:PORT is the first line that is printed.
"""

import subprocess
import sys

from run_model_tools.inside_tvm import quiet_stderr

with quiet_stderr():
    from tvm.rpc.tracker import Tracker

_HOST = "127.0.0.1"


def main():
    program, key = sys.argv[1:]
    with quiet_stderr():
        tracker = Tracker(host=_HOST, port=9190, port_end=9999, silent=True)
    address = "%s:%d" % (_HOST, tracker.port)
    server = subprocess.Popen([program, "--port", "0", "--key", key, "--tracker", address,
                               "--silent"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        # Its first line says that it listens.
        if server.stdout.readline():
            print(address, flush=True)
            sys.stdin.read()
    finally:
        server.terminate()
        server.wait()
        tracker.terminate()


if __name__ == "__main__":
    main()
