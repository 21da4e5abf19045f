#include "run_model/rpc_server/help.h"

#include "run_model/shared/failure_report.h"

namespace run_model {
namespace {

constexpr char kBeforeExitCodes[] =
    R"(rpc_server lets TVM's own Python (0.8 to 0.20) upload, run and time models on this board. The
board needs no TVM: this one file is all.

Usage:
  rpc_server [flags]

On the host:
  remote = tvm.rpc.connect("BOARD", 9090)
  remote.upload("net.so")
  library = remote.load_module("net.so")

Each session is a process of its own with a folder of its own that is removed afterwards: what
crashes or hangs a model ends that session, with an error at the client that says why.

Where to listen:
  --host ADDRESS       the address to listen on (default: 127.0.0.1, which only programs on this
                       board reach; 0.0.0.0 is every network that it is in: see Security)
  --port N             the first port to try, 0 for any free one (default: 9090)
  --port-end N         try ports below N (default: 9199)

Who is served:
  --key KEY            the kind of board, as pynq; clients must ask for the same (default: none)
  --tracker HOST:PORT  register with TVM's RPC tracker (tvm.exec.rpc_tracker), from which clients
                       then get the board. Needs --key. A tracker that is away is tried again
  --custom-addr HOST[:PORT]
                       what the tracker tells clients to connect to (default: the address that it
                       sees and the port that is listened on)
  --proxy HOST:PORT    do not listen; serve clients of TVM's RPC proxy (tvm.exec.rpc_proxy)
  --auth-key-file FILE serve only clients that know the key in FILE: at least 16 bytes in a file
                       that nobody else can read. TVM's clients connect through
                       scripts/rpc_auth_proxy on the host

Limits:
  --max-sessions N     sessions at a time (default: 1, so that measurements do not disturb each
                       other); more clients wait
  --session-timeout S  seconds of a session (default: 0, no limit; a client can ask for less)
  --call-timeout S     seconds that one call may take, without those in which data comes or goes
                       (default: 600; 0: no limit)
  --memory-limit SIZE  memory of a session, as in 512M (default: 0, no limit)
  --file-limit SIZE    all files of a session together (default: 1G)
  --work-dir DIR       where the folders of sessions are made (default: $TMPDIR, or /tmp)
  --threads N          threads of a session (default: $TVM_NUM_THREADS, else one for each core)

Output:
  The first line on standard output is "listening on HOST:PORT", as soon as clients can connect;
  the log goes to standard error.
  --silent             log warnings only
  --log-json           both as one JSON object a line, with schema_version
  --help, --version    this text, the version

Security: a model is machine code. Whoever can open a session can do all that this program's user
can do, so run it as a user of its own, not as root. The limits keep mistakes of models from
harming the board, not attackers. --auth-key-file keeps strangers out but encrypts nothing; across
networks that others are in, leave --host alone and use ssh -L 9090:localhost:9090 BOARD.

SIGTERM and SIGINT end the server and its sessions.

Exit codes:
  0  ended by SIGTERM or SIGINT
)";

constexpr char kAfterExitCodes[] = R"(
Examples:
  rpc_server
  rpc_server --host 0.0.0.0 --key pynq --tracker host:9190 --auth-key-file board.key
  rpc_server --host 0.0.0.0 --port 9091 --session-timeout 600 --memory-limit 256M
)";

}  // namespace

std::string rpc_server_help_text() {
  return std::string(kBeforeExitCodes) + exit_codes_text(ErrorKind::kFormat) + kAfterExitCodes;
}

std::string rpc_server_version_text() {
  return std::string("rpc_server ") + RUN_MODEL_VERSION + "\n";
}

}  // namespace run_model
