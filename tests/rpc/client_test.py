"""What a user does from the host: TVM's own client, unchanged, against the server."""

from __future__ import annotations

import gc
import os
import re
import time

import numpy as np
import pytest
import tvm
from conftest import connect
from server_process import wait_until
from tvm import relay, rpc
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from workloads import IS_NATIVE, Network, check_result, run_network

# The board is what this machine is, so that all is worth testing; elsewhere the selection below.
native_only = pytest.mark.skipif(not IS_NATIVE, reason="the same code as in the native server")


def upload(remote, path, name=None):
    remote.upload(str(path), name)
    return remote.load_module(name or path.name)


def error_of(call, *arguments, kind=tvm.TVMError):
    with pytest.raises(kind) as caught:
        call(*arguments)
    return str(caught.value)


# Files.

@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_003])
def test_a_file_comes_back_as_it_went(remote, size):
    content = np.random.default_rng(size).bytes(size)
    remote.upload(bytearray(content), "dat.bin")
    assert bytes(remote.download("dat.bin")) == content


def test_an_upload_replaces_an_older_file(remote):
    remote.upload(bytearray(b"a long first text"), "note.txt")
    remote.upload(bytearray(b"short"), "note.txt")
    assert bytes(remote.download("note.txt")) == b"short"


def test_a_removed_file_is_gone(remote):
    remote.upload(bytearray(b"x"), "x.bin")
    remote.remove("x.bin")
    assert "x.bin" in error_of(remote.download, "x.bin")


@native_only
@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "..", ".", "", ".hidden"])
def test_files_stay_in_the_session_s_folder(remote, name):
    upload_function = remote.get_function("tvm.rpc.server.upload")
    for call in (lambda: upload_function(name, bytearray(b"x")), lambda: remote.download(name),
                 lambda: remote.load_module(name)):
        assert "name" in error_of(call)
    assert upload_function("good", bytearray(b"x")) is None


@native_only
def test_removing_what_tuners_remove(remote, tmp_path):
    """They give the host's name, which upload has put under its last part, and then too much."""
    here = tmp_path / "tmp_func.so"
    here.write_bytes(b"x")
    remote.upload(str(here))
    for name in (str(here), str(here), "tmp_func.tar", ""):
        remote.remove(name)
    assert here.exists() and "tmp_func.so" in error_of(remote.download, "tmp_func.so")
    for name in ("../x", "a/b", "..", "/tmp/.."):
        assert "name" in error_of(remote.remove, name)


@native_only
def test_sessions_do_not_see_each_other_s_files(server, remote):
    remote.upload(bytearray(b"mine"), "mine.txt")
    other = connect(server)
    assert "mine.txt" in error_of(other.download, "mine.txt")


# Functions and their arguments.

def test_a_compiled_function(remote, add_one):
    library = upload(remote, add_one)
    device = remote.cpu()
    given = np.random.default_rng(1).standard_normal(1024).astype("float32")
    a = tvm.nd.array(given, device)
    b = tvm.nd.array(np.zeros(1024, "float32"), device)
    library["add_one"](a, b)
    np.testing.assert_array_equal(b.numpy(), given + np.float32(1))
    library.entry_func(b, a)
    np.testing.assert_array_equal(a.numpy(), given + np.float32(1) + np.float32(1))


def test_arguments_of_every_kind_arrive(remote, functions):
    library = upload(remote, functions)
    text = tvm.nd.array(np.zeros(1000, "uint8"), remote.cpu())

    def described(*arguments):
        library["describe"](*arguments, text)
        return text.numpy().tobytes().rstrip(b"\0").decode()

    matrix = tvm.nd.empty((2, 3), "int16", remote.cpu())
    assert described() == ""
    assert described(-7, 2**62, True, False) == f"int -7;int {2**62};int 1;int 0;"
    assert described(0.1, -1e300, float("inf")) == (
        "float 0.10000000000000001;float -1.0000000000000001e+300;float inf;")
    assert described("", "Käse", "a b") == "text ;text Käse;text a b;"
    assert described(bytearray(b"\0\x01\xff"), bytearray(b"")) == "bytes 0 1 255;bytes;"
    assert described(None) == "null;"
    assert described(remote.cpu(0)) == "device 1 0;"
    scalar = tvm.nd.empty((), "float64", remote.cpu())
    assert described(matrix, scalar) == "tensor 0 16 1 2 3;tensor 2 64 1;"
    assert described(*range(100)) == "".join(f"int {i};" for i in range(100))


def test_results_of_compiled_functions(remote, functions):
    library = upload(remote, functions)
    assert library["give_int"]() == -(2**63)
    assert library["give_float"]() == -0.1


def test_a_local_tensor_is_refused_where_a_remote_one_is_needed(remote, add_one):
    library = upload(remote, add_one)
    a = tvm.nd.array(np.zeros(1024, "float32"))
    with pytest.raises((ValueError, tvm.TVMError)):
        library["add_one"](a, a)


@native_only
def test_functions_that_a_program_adds_to_the_server(start_server):
    """server_with_test_functions.cc: what they take and give is more than the server's own do."""
    server = start_server(program=os.environ["RUN_MODEL_RPC_SERVER_WITH_FUNCTIONS"])
    remote = connect(server, "")
    echo = remote.get_function("testing.echo")
    for value in (0, -(2**63), 2**63 - 1, 0.1, float("-inf"), "", "Käse", None):
        assert echo(value) == value and type(echo(value)) is type(value)
    assert bytes(echo(bytearray(range(256)))) == bytes(range(256))
    assert echo(True) in (True, 1)
    assert remote.get_function("rpc.test.add_to_lhs")(10)(12) == 22
    shape = remote.get_function("runtime.ShapeTuple")(2, 3)
    assert shape.type_key == "runtime.RPCObjectRef"
    assert remote.get_function("runtime.GetShapeTupleElem")(shape, 1) == 3
    assert "ShapeTuple" in error_of(remote.get_function("runtime.GetShapeTupleSize"), 5)
    give = remote.get_function("rpc.test.remote_return_nd")
    array, element = give("get_arr")(), give("get_arr_elem")
    array.copyfrom(np.arange(10, dtype="float32"))
    assert element(array, 7) == 7.0
    np.testing.assert_array_equal(array.numpy(), np.arange(10, dtype="float32"))


# Devices and tensors.

def test_the_device_s_attributes(remote):
    device = remote.cpu(0)
    assert device.exist
    assert device.device_name is None or isinstance(device.device_name, str)
    assert device.api_version is None or isinstance(device.api_version, int)
    device.sync()
    for other in (remote.cuda(0), remote.cl(0), remote.vulkan(0)):
        assert not other.exist


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64", "float16", "float32", "float64", "bool"])
def test_tensors_of_every_type_come_back(remote, dtype):
    random = np.random.default_rng(2)
    value = (random.integers(0, 2, (3, 5)) if dtype == "bool" else
             random.integers(0, 100, (3, 5))).astype(dtype)
    there = tvm.nd.array(value, remote.cpu())
    assert there.shape == (3, 5) and there.dtype == dtype
    np.testing.assert_array_equal(there.numpy(), value)


@pytest.mark.parametrize("shape", [(), (0, 4), (1,), (2, 3, 4, 5, 6, 1)])
def test_tensors_of_every_rank_come_back(remote, shape):
    value = np.random.default_rng(3).standard_normal(shape).astype("float32")
    np.testing.assert_array_equal(tvm.nd.array(value, remote.cpu()).numpy(), value)


def test_large_tensors_are_copied_in_pieces(remote):
    # More than a buffer of any socket or of the client's.
    value = np.random.default_rng(4).integers(0, 256, 9_000_001, dtype="uint8")
    there = tvm.nd.array(value, remote.cpu())
    assert there.numpy().tobytes() == value.tobytes()
    other = tvm.nd.empty(value.shape, "uint8", remote.cpu())
    there.copyto(other)
    assert other.numpy().tobytes() == value.tobytes()


def test_other_devices_are_refused_with_a_sentence(remote):
    assert "CPU" in error_of(lambda: tvm.nd.array(np.zeros(4), remote.cuda(0)))


# The graph executor.

def exported(remote, network: Network):
    return graph_executor.GraphModule(upload(remote, network.export)["default"](remote.cpu()))


def with_json(remote, network: Network, create=graph_executor.create):
    return create(network.graph, upload(remote, network.library), remote.cpu())


def params_bytes(network: Network):
    return relay.save_param_dict(network.params)


def test_a_network_exported_to_one_file(remote, network):
    check_result(run_network(exported(remote, network), network.picture), network.expected)


def test_a_network_from_json_and_parameters(remote, network):
    executor = with_json(remote, network)
    executor.load_params(params_bytes(network))
    check_result(run_network(executor, network.picture), network.expected)


@native_only
def test_parameters_set_one_by_one(remote, network):
    executor = with_json(remote, network)
    executor.set_input(**network.params)
    executor.run(data=tvm.nd.array(network.picture))
    check_result(executor.get_output(0).numpy(), network.expected)


@native_only
def test_shared_parameters(remote, network):
    first, second = with_json(remote, network), with_json(remote, network)
    first.load_params(params_bytes(network))
    second.share_params(first, params_bytes(network))
    check_result(run_network(second, network.picture), network.expected)


def test_questions_about_the_network(remote, network):
    executor = exported(remote, network)
    inputs = executor.get_num_inputs()
    assert executor.get_num_outputs() == 1 and inputs == 1 + len(network.params)
    index = executor.get_input_index("data")
    assert 0 <= index < inputs and executor.get_input_index("nonsense") == -1
    assert executor.get_input(index).shape == (1, 3, 12, 12)
    assert executor.get_input("data").shape == (1, 3, 12, 12)
    assert executor.get_output(0).shape == (1, 4)


def test_outputs_into_a_given_tensor(remote, network):
    executor = exported(remote, network)
    out = tvm.nd.empty((1, 4), "float32", remote.cpu())
    executor.set_input(0, network.picture)
    executor.run()
    executor.get_output(0, out)
    check_result(out.numpy(), network.expected)


def test_inputs_and_outputs_without_a_copy(remote, network):
    executor = exported(remote, network)
    picture = tvm.nd.array(network.picture, remote.cpu())
    out = tvm.nd.array(np.zeros((1, 4), "float32"), remote.cpu())
    executor.set_input_zero_copy("data", picture)
    executor.set_output_zero_copy(0, out)
    executor.run()
    check_result(out.numpy(), network.expected)
    picture.copyfrom(network.picture * 0)
    executor.run()
    assert np.abs(out.numpy() - network.expected).max() > 0.01


@native_only
def test_two_executors_of_a_library_do_not_disturb_each_other(remote, network):
    library = upload(remote, network.export)
    first, second = (graph_executor.GraphModule(library["default"](remote.cpu())) for _ in range(2))
    first.set_input("data", network.picture)
    second.set_input("data", network.picture * 0)
    second.run()
    first.run()
    check_result(first.get_output(0).numpy(), network.expected)


@native_only
def test_an_executor_outlives_its_library_s_handle(remote, network):
    library = upload(remote, network.export)
    executor = graph_executor.GraphModule(library["default"](remote.cpu()))
    output = executor.get_output(0)
    executor.set_input("data", network.picture)
    run = executor.module["run"]
    del library, executor
    run()
    check_result(output.numpy(), network.expected)


# Times.

def test_time_evaluator(remote, add_one):
    library = upload(remote, add_one)
    a, b = (tvm.nd.array(np.zeros(1024, "float32"), remote.cpu()) for _ in range(2))
    times = library.time_evaluator("add_one", remote.cpu(), number=5, repeat=4)(a, b)
    assert len(times.results) == 4 and all(0 < seconds < 1 for seconds in times.results)
    assert times.min <= times.median <= times.max
    assert (b.numpy() == 1).all()
    before = time.monotonic()
    longer = library.time_evaluator("add_one", remote.cpu(), number=1, repeat=2,
                                    min_repeat_ms=30)(a, b)
    # Runs are repeated until they take that long together.
    assert time.monotonic() - before >= 0.06
    assert len(longer.results) == 2 and longer.mean > 0


@native_only
def test_time_evaluator_with_a_flushed_cache(remote, add_one):
    library = upload(remote, add_one)
    a, b = (tvm.nd.array(np.zeros(1024, "float32"), remote.cpu()) for _ in range(2))
    times = library.time_evaluator("add_one", remote.cpu(), number=1, repeat=3,
                                   f_preproc="cache_flush_cpu_non_first_arg")(a, b)
    assert len(times.results) == 3 and times.min > 0
    assert "make_coffee" in error_of(lambda: library.time_evaluator(
        "add_one", remote.cpu(), number=1, f_preproc="make_coffee"))


@native_only
def test_time_evaluator_hands_on_the_function_s_error(remote, functions):
    library = upload(remote, functions)
    assert "the stove is cold" in error_of(library.time_evaluator("fail", remote.cpu(), number=3))


def test_benchmark(remote, network):
    executor = exported(remote, network)
    executor.set_input("data", network.picture)
    for end_to_end in (False, True):
        result = executor.benchmark(remote.cpu(), repeat=3, number=2, end_to_end=end_to_end)
        assert len(result.results) == 3 and result.min > 0
    other = executor.benchmark(remote.cpu(), repeat=2, number=1, data=network.picture)
    assert len(other.results) == 2
    check_result(executor.get_output(0).numpy(), network.expected)


# The debug executor.

def debug(remote, network: Network, dump):
    executor = with_json(remote, network, lambda *a: debug_executor.create(*a, dump_root=str(dump)))
    executor.load_params(params_bytes(network))
    return executor


def local_debug(network: Network, dump):
    executor = debug_executor.create(network.local.get_graph_json(), network.local.get_lib(),
                                     tvm.cpu(), dump_root=str(dump))
    executor.load_params(relay.save_param_dict(dict(network.local.get_params())))
    return executor


def test_debug_run_prints_its_report(remote, network, tmp_path, capsys):
    executor = debug(remote, network, tmp_path)
    executor.run(data=tvm.nd.array(network.picture), number=2, repeat=2)
    printed = capsys.readouterr().out
    assert "Node Name" in printed and "Total_time" in printed and "conv2d" in printed
    check_result(executor.get_output(0).numpy(), network.expected)


@native_only
def test_debug_outputs_of_each_node_are_tvm_s_own(remote, network, tmp_path):
    ours = debug(remote, network, tmp_path / "ours")
    theirs = local_debug(network, tmp_path / "theirs")
    for executor in (ours, theirs):
        executor.set_input("data", network.picture)
    for index, node in enumerate(theirs.debug_datum.get_graph_nodes()):
        assert theirs.debug_datum.get_graph_node_output_num(node) == 1
        outs = []
        for executor in (ours, theirs):
            executor._execute_node(index)
            outs.append(executor._get_node_output(index, 0).numpy())
        np.testing.assert_array_equal(outs[0], outs[1], err_msg=node["name"])
        by_name = ours.debug_get_output(
            node["name"], tvm.nd.empty(outs[0].shape, "float32", remote.cpu()))
        np.testing.assert_array_equal(by_name.numpy(), outs[1], err_msg=node["name"])


def test_debug_times_of_each_node(remote, network, tmp_path):
    executor = debug(remote, network, tmp_path)
    executor.set_input("data", network.picture)
    times = executor.run_individual(number=2, repeat=3)
    nodes = executor.debug_datum.get_graph_nodes()
    assert [len(row) for row in times] == [3] * len(nodes)
    for node, row in zip(nodes, times):
        assert all(seconds == 0 for seconds in row) if node["op"] == "param" else min(row) > 0, node
    last = executor.run_individual_node(len(nodes) - 1, number=2, repeat=3)
    assert len(last.results) == 3 and last.min > 0


@native_only
def test_profile_has_the_structure_of_tvm_s_own(remote, network, tmp_path):
    reports = [executor.profile(data=tvm.nd.array(network.picture))
               for executor in (debug(remote, network, tmp_path / "ours"),
                                local_debug(network, tmp_path / "theirs"))]
    calls = [[{key: type(value).__name__ for key, value in call.items()} for call in report.calls]
             for report in reports]
    assert calls[0] == calls[1]
    names = [[call["Name"] for call in report.calls] for report in reports]
    assert names[0] == names[1]
    hashes = [[str(call.get("Hash")) for call in report.calls] for report in reports]
    assert hashes[0] == hashes[1]
    shapes = [[str(call["Argument Shapes"]) for call in report.calls] for report in reports]
    assert shapes[0] == shapes[1]
    # All that TVM does with a report works.
    assert "Duration" in reports[0].csv() and "Name" in str(reports[0].table())
    # The devices have other names.
    metrics = [[sorted(row) for row in report.device_metrics.values()] for report in reports]
    assert metrics[0] == metrics[1]


@native_only
def test_the_debug_executor_of_a_single_file(remote, network, tmp_path):
    library = upload(remote, network.export)
    executor = debug_executor.GraphModuleDebug(
        library["debug_create"]("default", remote.cpu()), [remote.cpu()],
        library["get_graph_json"](), str(tmp_path))
    check_result(run_network_quietly(executor, network), network.expected)


def run_network_quietly(executor, network: Network):
    executor.set_input("data", network.picture)
    executor.run(number=1)
    return executor.get_output(0).numpy()


# Errors that a person can read.

def test_functions_that_are_not_there(remote, network):
    with pytest.raises(AttributeError, match="make_coffee"):
        remote.get_function("make_coffee")
    library = upload(remote, network.export)
    with pytest.raises(AttributeError, match="make_tea"):
        library["make_tea"]
    with pytest.raises(AttributeError, match="SystemLib"):
        remote.system_lib()


def test_a_compiled_function_says_what_it_does_not_like(remote, add_one, functions):
    library = upload(remote, add_one)
    right = tvm.nd.array(np.zeros(1024, "float32"), remote.cpu())
    for shape, dtype in (((1000,), "float32"), ((1024,), "int32"), ((32, 32), "float32")):
        wrong = tvm.nd.array(np.zeros(shape, dtype), remote.cpu())
        assert "add_one" in error_of(library["add_one"], wrong, right)
    assert "num_args" in error_of(library["add_one"], right)
    assert "the stove is cold" in error_of(upload(remote, functions)["fail"])
    library["add_one"](right, right)


def test_wrong_shapes_for_a_network(remote, network):
    executor = exported(remote, network)
    with pytest.raises((ValueError, tvm.TVMError)):
        executor.set_input("data", np.zeros((1, 3, 13, 12), "float32"))
    wrong = tvm.nd.empty((1, 3, 13, 12), "float32", remote.cpu())
    for name in ("set_input_zero_copy", "set_input"):
        message = error_of(executor.module[name], "data", wrong)
        assert "data" in message or "shape" in message.lower() or "bytes" in message, message
    with pytest.raises((RuntimeError, tvm.TVMError), match="nonsense"):
        executor.set_input("nonsense", network.picture)
    check_result(run_network(executor, network.picture), network.expected)


@native_only
def test_a_wrong_graph_or_wrong_parameters(remote, network):
    library = upload(remote, network.library)
    assert "JSON" in error_of(graph_executor.create, "{", library, remote.cpu())
    executor = with_json(remote, network)
    assert error_of(executor.load_params, b"no parameters")
    foreign = relay.save_param_dict(
        {name: tvm.nd.array(np.zeros(3, "float32")) for name in network.params})
    assert error_of(executor.load_params, foreign)


def test_a_library_for_another_cpu(remote, add_one):
    foreign = bytearray(add_one.read_bytes())
    foreign[18:20] = (22).to_bytes(2, "little")  # e_machine: IBM's S/390, which no build is for
    remote.upload(foreign, "foreign.so")
    message = error_of(remote.load_module, "foreign.so")
    assert "foreign.so" in message and re.search(r"another CPU|machine|S/?390", message), message


@native_only
def test_files_that_are_no_libraries(remote, add_one):
    remote.upload(bytearray(b"some text"), "text.so")
    assert "text.so" in error_of(remote.load_module, "text.so")
    remote.upload(bytearray(add_one.read_bytes()[:2000]), "cut.so")
    assert "cut.so" in error_of(remote.load_module, "cut.so")
    remote.upload(bytearray(b"x"), "picture.png")
    assert "picture.png" in error_of(remote.load_module, "picture.png")
    assert "missing.so" in error_of(remote.load_module, "missing.so")


@native_only
def test_objects_are_linked_where_there_is_a_compiler(remote, tmp_path):
    """AutoTVM's and TVM's tutorials' default: a .tar of objects."""
    n = tvm.te.placeholder((8,), name="n")
    twice = tvm.te.compute((8,), lambda i: n[i] * 2)
    built = tvm.build(tvm.te.create_schedule(twice.op), [n, twice], "llvm", name="twice")
    built.export_library(str(tmp_path / "twice.tar"))
    function = upload(remote, tmp_path / "twice.tar")["twice"]
    a, b = (tvm.nd.array(np.arange(8, dtype="float32"), remote.cpu()) for _ in range(2))
    function(a, b)
    np.testing.assert_array_equal(b.numpy(), 2 * np.arange(8, dtype="float32"))
    linked = bytes(remote.download_linked_module("twice.tar"))
    (tmp_path / "linked.so").write_bytes(linked)
    assert tvm.runtime.load_module(str(tmp_path / "linked.so"))["twice"]


def test_objects_without_a_compiler_get_advice(start_server, tmp_path):
    server = start_server(environment={"PATH": "/nonexistent" if IS_NATIVE else os.environ["PATH"],
                                       "CXX": "/nonexistent/c++"})
    remote = connect(server, "")
    (tmp_path / "net.tar").write_bytes(b"\0" * 1024)
    message = error_of(upload, remote, tmp_path / "net.tar")
    assert "export_library" in message and "g++" in message


@native_only
def test_what_makes_no_sense_here_is_refused(server, remote, add_one, network):
    library, other = upload(remote, add_one), upload(remote, network.library)
    assert "import" in error_of(library.import_module, other)
    elsewhere = ["rpc.Connect", "board2", 9090, ""]
    message = error_of(lambda: connect(server, session_constructor_args=elsewhere))
    assert "rpc.Connect" in message


# Sessions.

def test_a_wrong_key_is_refused(server):
    with pytest.raises(tvm.TVMError, match="key"):
        connect(server, "cellar")


@native_only
def test_handles_do_not_pile_up(server, add_one):
    remote = connect(server)
    library = upload(remote, add_one)
    function = library["add_one"]
    for _ in range(2000):
        a = tvm.nd.empty((1024,), "float32", remote.cpu())
        function(a, a)
    [session] = [pid for pid in server.processes() if pid != server.pid]
    assert len(os.listdir(f"/proc/{session}/fd")) < 30


def requests_of_a_session(server, copies):
    """How many requests the server's log counts for a session with so many copies of a tensor."""
    connected = re.compile(r"session (\d+) \S+ connected")
    before = len(connected.findall(server.log()))
    remote = connect(server)
    array = tvm.nd.empty((4,), "float32", remote.cpu())
    wait_until(lambda: len(connected.findall(server.log())) > before, "the session in the log")
    number = connected.findall(server.log())[-1]
    for _ in range(copies):
        array.numpy()
    del array, remote
    gc.collect()
    end = re.compile(rf"session {number} \S+ ended after .* and (\d+) requests")
    wait_until(lambda: end.search(server.log()), "the session's end in the log")
    return int(end.search(server.log()).group(1))


@native_only
def test_a_copy_takes_two_requests(server):
    """The copy and the wait for the device: the client asks only once how much a request may
    hold."""
    assert requests_of_a_session(server, 110) - requests_of_a_session(server, 10) == 2 * 100


@native_only
def test_random_fill(remote):
    fill = remote.get_function("tvm.contrib.random.random_fill")
    tensor = tvm.nd.array(np.zeros(1000, "float32"), remote.cpu())
    fill(tensor)
    value = tensor.numpy()
    assert np.isfinite(value).all() and len(np.unique(value)) > 100
    for dtype in ("int8", "uint8", "int32", "float16", "float64"):
        remote.get_function("tvm.contrib.random.random_fill_for_measure")(
            tvm.nd.empty((7,), dtype, remote.cpu()))


@native_only
def test_sessions_at_the_same_time(server, network):
    sessions = [connect(server) for _ in range(4)]
    executors = [exported(session, network) for session in sessions]
    for index, executor in enumerate(executors):
        executor.set_input("data", network.picture * (index == 2))
    for executor in executors:
        executor.run()
    check_result(executors[2].get_output(0).numpy(), network.expected)


def test_a_session_of_limited_time(server):
    remote = connect(server, session_timeout=30)
    assert remote.cpu().exist


def test_the_server_logs_to_what_it_serves(server, remote, add_one):
    upload(remote, add_one, "logged.so")
    # What a session says reaches the log by way of the server.
    wait_until(lambda: "logged.so" in server.log(), "the upload in the log")


def test_a_tracker_finds_the_board(start_server, tracker, network):
    where = f"{tracker.host}:{tracker.port}"
    server = start_server("--tracker", where, "--key", "oven")
    client = rpc.connect_tracker(tracker.host, tracker.port)
    remote = client.request("oven", session_timeout=60)
    check_result(run_network(exported(remote, network), network.picture), network.expected)
    assert client.summary()["queue_info"]["oven"]["free"] == 0
    assert ["server:oven", server.port] in [[entry["key"], entry["addr"][1]]
                                            for entry in client.summary()["server_info"]]
    assert "oven" in client.text_summary()
