"""Functions that TVM's client calls, what it passes to them and gets of them, and tensors."""

from __future__ import annotations

import gc
import os
import re
import time

import numpy as np
import pytest
import tvm
from board import native_only
from server_process import wait_until
from tvm_client import connect, error_of, upload

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
    assert library["give_bool"]() in (True, 1)


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


# Devices and tensors.

def test_the_device_s_attributes(remote):
    device = remote.cpu(0)
    assert device.exist
    assert device.device_name is None or isinstance(device.device_name, str)
    assert device.api_version is None or isinstance(device.api_version, int)
    device.sync()
    for other in (remote.metal(0), remote.ext_dev(0), remote.cuda(99)):
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
    assert "it has the CPU" in error_of(lambda: tvm.nd.array(np.zeros(4), remote.metal(0)))
    assert "cuda:99" in error_of(lambda: tvm.nd.array(np.zeros(4), remote.cuda(99)))


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
    """The copy and the wait for the device: the client asks once how much a request may hold."""
    assert requests_of_a_session(server, 110) - requests_of_a_session(server, 10) == 2 * 100


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
