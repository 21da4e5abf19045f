#include "run_model/rpc_server/flags.h"

namespace run_model {

constinit ServerFlags server_flags;

namespace {

constexpr ServerFlags& f = server_flags;

constexpr Entry kUsages[] = {{.name = "[flags]"}};

constexpr Flag kListenFlags[] = {
    {.name = "host",
     .storage = &f.host,
     .value = "ADDRESS",
     .standard = "127.0.0.1",
     .words = "the address to listen on (default: {}, which only programs on this board reach; "
              "0.0.0.0 is every network that it is in: see Security)"},
    {.name = "port",
     .storage = &f.port,
     .value = "N",
     .standard = "9090",
     .words = "the first port to try, 0 for any free one (default: {})"},
    {.name = "port_end",
     .storage = &f.port_end,
     .value = "N",
     .standard = "9199",
     .words = "try ports below N (default: {})"},
};

constexpr Flag kClientFlags[] = {
    {.name = "key",
     .storage = &f.key,
     .value = "KEY",
     .words = "the kind of board, as pynq; clients must ask for the same (default: none)"},
    {.name = "tracker",
     .storage = &f.tracker,
     .value = "HOST:PORT",
     .words = "register with TVM's RPC tracker (tvm.exec.rpc_tracker), from which clients then get "
              "the board. Needs --key. A tracker that is away is tried again until it is back"},
    {.name = "custom_addr",
     .storage = &f.custom_addr,
     .value = "HOST[:PORT]",
     .words = "what the tracker tells clients to connect to (default: the address that it sees and "
              "the port that is listened on)"},
    {.name = "proxy",
     .storage = &f.proxy,
     .value = "HOST:PORT",
     .words = "do not listen; serve clients of TVM's RPC proxy (tvm.exec.rpc_proxy)"},
    {.name = "auth_key_file",
     .storage = &f.auth_key_file,
     .value = "FILE",
     .words = "serve only clients that know the key in FILE: at least 16 bytes in a file that "
              "nobody else can read. TVM's clients connect through scripts/rpc_auth_proxy on the "
              "host",
     .more = "It answers the server's challenge for them.",
     .kind = ValueKind::kFile},
};

constexpr Flag kLimitFlags[] = {
    {.name = "max_sessions",
     .storage = &f.max_sessions,
     .value = "N",
     .standard = "1",
     .words = "sessions at a time (default: {}, so that measurements do not disturb each other); "
              "more clients wait"},
    {.name = "session_timeout",
     .storage = &f.session_timeout,
     .value = "S",
     .standard = "0",
     .words = "seconds of a session (default: {}, no limit; a client can ask for less)"},
    {.name = "call_timeout",
     .storage = &f.call_timeout,
     .value = "S",
     .standard = "600",
     .words = "seconds that one call may take, without those in which data comes or goes (default: "
              "{}; 0: no limit)"},
    {.name = "idle_timeout",
     .storage = &f.idle_timeout,
     .value = "S",
     .standard = "0",
     .words = "seconds for which a client may ask a session for nothing before it is ended "
              "(default: {}, no limit)"},
    {.name = "memory_limit",
     .storage = &f.memory_limit,
     .value = "SIZE",
     .standard = "0",
     .words = "memory of a session, as in 512M (default: {}, no limit)"},
    {.name = "file_limit",
     .storage = &f.file_limit,
     .value = "SIZE",
     .standard = "1G",
     .words = "all files of a session together (default: {})"},
    {.name = "work_dir",
     .storage = &f.work_dir,
     .value = "DIR",
     .words = "where the folders of sessions are made (default: $TMPDIR, or /tmp)",
     .kind = ValueKind::kFolder},
    {.name = "threads",
     .storage = &f.threads,
     .value = "N",
     .words = "threads of a session (default: $TVM_NUM_THREADS, else one for each core)"},
    {.name = "landlock",
     .storage = &f.landlock,
     .standard = "true",
     .negated = "let sessions write where this program's user can, make connections and signal "
                "other processes, which they cannot where the kernel has Landlock"},
};

constexpr Flag kOutputFlags[] = {
    {.name = "silent", .storage = &f.silent, .words = "log warnings only"},
    {.name = "log_json",
     .storage = &f.log_json,
     .words = "both as one JSON object a line, with schema_version"},
    {.name = "help", .words = "this text", .aliases = "h"},
    {.name = "helpfull"},
    {.name = "version", .words = "the version"},
};

constexpr FlagGroup kGroups[] = {
    {.heading = "Where to listen", .flags = kListenFlags},
    {.heading = "Who is served", .flags = kClientFlags},
    {.heading = "Limits", .flags = kLimitFlags},
    {.heading = "Output",
     .note = "The first line on standard output is \"listening on HOST:PORT\", as soon as clients "
             "can connect; the log goes to standard error.",
     .flags = kOutputFlags},
};

constexpr Entry kTopics[] = {
    {.name = "Security",
     .words =
         R"(A model is machine code. Whoever can open a session can do all that this program's user
can do, so run it as a user of its own, not as root. The limits keep mistakes of models from harming
the board, not attackers; where the kernel has Landlock, a session can write in its own folder only.
--auth-key-file keeps strangers out but encrypts nothing; across networks
that others are in, leave --host alone and use ssh -L 9090:localhost:9090 BOARD.)"},
    {.name = "Signals",
     .words = "SIGTERM, SIGINT and, unless nohup has it ignored, SIGHUP end the "
              "server and its sessions."},
};

constexpr Entry kEnvironment[] = {
    {.name = "TMPDIR", .words = "Where the folders of sessions are made without --work-dir."},
    {.name = "TVM_NUM_THREADS", .words = "The number of threads where --threads is not given."},
};

constexpr Entry kExamples[] = {
    {.name = "rpc_server", .words = "For programs on this board, or through ssh:"},
    {.name = "rpc_server --host 0.0.0.0 --key pynq --tracker host:9190 --auth-key-file board.key",
     .words = "For a tracker's clients that know a key:"},
    {.name = "rpc_server --host 0.0.0.0 --port 9091 --session-timeout 600 --memory-limit 256M",
     .words = "With limits:"},
};

}  // namespace

constexpr Manual kServerManual{
    .program = "rpc_server",
    .summary = "run models on this board for TVM's Python on another machine",
    .description =
        R"(rpc_server lets TVM's own Python (0.8 or later) upload, run and time models on this
board. The board needs no TVM: this one file is all. On the host:

  remote = tvm.rpc.connect("BOARD", 9090)
  remote.upload("net.so")
  library = remote.load_module("net.so")

Each session is a process of its own with a folder of its own that is removed afterwards: what crashes
or hangs a model ends that session, with an error at the client that says why.)",
    .more = R"(The error names the signal or the limit, and the next client is served. It is used as
python -m tvm.exec.rpc_server is, also for tuning. With a tracker, the client asks for a session by
tvm.rpc.connect_tracker("HOST", 9190).request("KEY").)",
    .usages = kUsages,
    .groups = kGroups,
    .topics = kTopics,
    .success = "ended by SIGTERM, SIGINT or SIGHUP",
    .last_error = ErrorKind::kFormat,
    .environment = kEnvironment,
    .examples = kExamples,
    .see_also = "run_model check_zoo",
};

}  // namespace run_model
