"""TVM's own client drives a GPU of the board: OpenCL through pocl and Vulkan through Mesa's
llvmpipe, which compute on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from board import native_only
from server_process import ServerProcess
from tvm import relay, te
from tvm.contrib import graph_executor
from tvm_client import connect, error_of, upload

from run_model_tools.inside_tvm.devices.code import blob, generators
from run_model_tools.inside_tvm.devices.placement import Placement

pytestmark = native_only
TARGET = tvm.target.Target("opencl", host="llvm")


@pytest.fixture(params=["cl"])
def gpu(remote, request):
    """Their packages are in scripts/packages.txt: a test without a driver fails."""
    device = getattr(remote, request.param)(0)
    assert device.exist, "install pocl-opencl-icd and mesa-vulkan-drivers"
    return device


on_both = pytest.mark.parametrize("gpu", ["cl", "vulkan"], indirect=True)


@pytest.fixture(scope="module")
def scaled(folder):
    """b[i] = a[i] * factor, with a scalar argument."""
    a = te.placeholder((te.var("n"),), name="a", dtype="float32")
    factor = te.var("factor", dtype="float32")
    b = te.compute(a.shape, lambda i: a[i] * factor, name="b")
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.op.axis[0], factor=64)
    schedule[b].bind(outer, te.thread_axis("blockIdx.x"))
    schedule[b].bind(inner, te.thread_axis("threadIdx.x"))
    path = folder / "scaled.so"
    tvm.build(schedule, [a, factor, b], TARGET, name="scaled").export_library(str(path))
    return path


def convolution():
    """A network with its parameters, an input and what comes of it."""
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    weights = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("float32")
    function = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1))))
    picture = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")
    padded = np.pad(picture, ((0, 0), (0, 0), (1, 1), (1, 1))).astype("float64")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = np.maximum(np.einsum("ncyxij,kcij->nkyx", windows, weights), 0)
    return tvm.IRModule.from_expr(function), {"w": weights}, picture, expected


@pytest.fixture(scope="module")
def network(folder):
    """The convolution for OpenCL: library alone, export, graph, parameters, input, reference."""
    module, parameters, picture, expected = convolution()
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, TARGET, params=parameters)
    export, library = folder / "gpu_export.so", folder / "gpu_library.so"
    built.export_library(str(export))
    built.get_lib().export_library(str(library))
    return export, library, built.get_graph_json(), built.get_params(), picture, expected


@on_both
def test_attributes(gpu):
    assert gpu.device_name
    assert gpu.max_threads_per_block >= 64
    assert len(gpu.max_thread_dimensions) == 3
    # Vulkan does not say.
    assert gpu.multi_processor_count is None or gpu.multi_processor_count >= 1
    gpu.sync()


def test_devices_that_are_not_there(remote):
    assert not remote.cl(99).exist
    assert "opencl:99" in error_of(lambda: tvm.nd.array(np.zeros(4), remote.cl(99)))
    assert "device type 8" in error_of(lambda: tvm.nd.array(np.zeros(4), remote.metal(0)))


@on_both
@pytest.mark.parametrize("shape", [(), (0, 4), (3, 5), (3_000_001,)])
def test_copies(gpu, shape):
    value = np.random.default_rng(3).standard_normal(shape).astype("float32")
    there = tvm.nd.array(value, gpu)
    np.testing.assert_array_equal(there.numpy(), value)
    within = tvm.nd.empty(shape, "float32", gpu)
    there.copyto(within)
    np.testing.assert_array_equal(within.numpy(), value)


def test_compiled_functions_compute_on_the_device(remote, gpu, scaled):
    function = upload(remote, scaled)["scaled"]
    value = np.arange(1000, dtype="float32")
    a, b = tvm.nd.array(value, gpu), tvm.nd.empty((1000,), "float32", gpu)
    function(a, 2.5, b)
    np.testing.assert_array_equal(b.numpy(), value * np.float32(2.5))
    # The host code looks whether both are on its device.
    assert "device" in error_of(function, tvm.nd.array(value, remote.cpu()), 2.5, b)


def test_times(remote, gpu, scaled):
    library = upload(remote, scaled)
    a, b = (tvm.nd.empty((1 << 20,), "float32", gpu) for _ in range(2))
    remote.get_function("tvm.contrib.random.random_fill")(a)
    assert a.numpy().min() >= 1 and a.numpy().max() <= 10
    result = library.time_evaluator("scaled", gpu, number=3, repeat=4)(a, 1.5, b)
    assert len(result.results) == 4 and min(result.results) > 1e-6
    np.testing.assert_array_equal(b.numpy(), a.numpy() * np.float32(1.5))


def test_graph_executors(remote, gpu, network):
    export, library, graph, params, picture, expected = network
    alone = graph_executor.create(graph, upload(remote, library), gpu)
    alone.set_input(**params)
    single = graph_executor.GraphModule(upload(remote, export)["default"](gpu))
    for module in (alone, single):
        module.set_input("x", picture)
        module.run()
        np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
        there = tvm.nd.empty(expected.shape, "float32", gpu)
        np.testing.assert_array_equal(module.get_output(0, there).numpy(),
                                      module.get_output(0).numpy())
        assert min(module.module.time_evaluator("run", gpu, number=2)().results) > 0
    assert "cuda" in error_of(
        lambda: graph_executor.create(graph, upload(remote, library), remote.cuda(0)))


@pytest.mark.parametrize("gpu", ["vulkan"], indirect=True)
def test_a_graph_of_our_generator(remote, gpu, folder):
    module, parameters, picture, expected = convolution()
    made = generators.install(tvm, "vulkan", None, Placement())
    with tvm.transform.PassContext(opt_level=3):
        built = relay.build(module, tvm.target.Target("vulkan", host="llvm"), params=parameters)
    library = folder / "vulkan.so"
    blob.link(built.get_lib(), made.module, str(library), "g++", [])
    executor = graph_executor.create(built.get_graph_json(), upload(remote, library), gpu)
    executor.set_input(**built.get_params())
    executor.set_input("x", picture)
    executor.run()
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert min(executor.module.time_evaluator("run", gpu, number=2)().results) > 0


def test_functions_of_the_cpu_refuse_the_gpu_s_memory(remote, gpu):
    tensor = tvm.nd.empty((4,), "float32", gpu)
    flush = remote.get_function("cache_flush_cpu_non_first_arg")
    assert "it is on a GPU" in error_of(flush, tensor, tensor)


def test_memory_is_given_back(server: ServerProcess):
    remote = connect(server)
    gpu = remote.cl(0)
    for _ in range(200):
        tvm.nd.empty((1 << 20,), "float32", gpu)
    assert tvm.nd.array(np.ones(3), gpu).numpy().sum() == 3
