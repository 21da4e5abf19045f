"""Today's TVM as a client: models of tests/compat's corpus in its virtual machine, functions,
tensors, errors."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from board import IS_NATIVE, compiled_c, native_only
from server_process import TARGET
from tvm import relax, rpc

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests/compat/data"
RELEASE = "0.27.0.post1"
MACHINE = {"native": "x86_64", "pynq_z1": "armv7l", "raspi4_aarch64": "aarch64"}[TARGET]


def cases() -> list[Any]:
    """All of the release for this machine; of an emulated one, one that has several shapes."""
    entries = json.loads((CORPUS / "relax_manifest.json").read_text())["entries"]
    wanted = [e for e in entries if e["release"] == RELEASE and e["machine"] == MACHINE
              and (IS_NATIVE or e["case"] == "transformer_dynamic")]
    return [pytest.param(e, id=f"{e['case']}-{e['form']}") for e in wanted]


@pytest.fixture(scope="module")
def corpus():
    with zipfile.ZipFile(CORPUS / f"relax-{RELEASE}.zip") as archive:
        yield archive


@pytest.fixture(scope="module")
def functions(tmp_path_factory) -> Path:
    """functions.c, compiled for the board."""
    # DLPack's header as TVM's packages bring it.
    headers = Path(tvm.__file__).parents[1] / "tvm_ffi/include"
    return compiled_c(Path(__file__).with_name("functions.c"), tmp_path_factory.mktemp("library"),
                      "-isystem", str(headers))


def arrays(archive: zipfile.ZipFile, name: str) -> dict[str, np.ndarray]:
    if name not in archive.namelist():
        return {}
    return dict(np.load(io.BytesIO(archive.read(name))))


def uploaded(remote: rpc.RPCSession, archive: zipfile.ZipFile, entry: dict[str, Any]) -> Any:
    library = next(f for f in entry["files"] if f.endswith(".so"))
    remote.upload(bytearray(archive.read(f"{entry['case']}/{library}")), "model.so")
    return remote.load_module("model.so")


def inputs_of(remote: rpc.RPCSession, archive: zipfile.ZipFile, entry: dict[str, Any]) -> list[Any]:
    params = [f for f in entry["files"] if f.endswith("_params.npz")]
    kept = arrays(archive, f"{entry['case']}/{params[0]}") if params else {}
    given = [*arrays(archive, f"{entry['case']}/inputs.npz").values(),
             *(kept[f"p_{i}"] for i in range(len(kept)))]
    return [tvm.runtime.tensor(value, remote.cpu()) for value in given]


def flat(value: Any) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [one for part in value for one in flat(part)]


def entry_of(case: str) -> dict[str, Any]:
    return next(p.values[0] for p in cases() if p.values[0]["case"] == case)


def error_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(Exception) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("entry", cases())
def test_a_virtual_machine(remote, corpus, entry):
    machine = relax.VirtualMachine(uploaded(remote, corpus, entry), remote.cpu())
    given = inputs_of(remote, corpus, entry)
    function = entry["function"]
    machine.set_input(function, *given)
    machine.invoke_stateful(function)
    outputs = flat(machine.get_outputs(function))
    expected = list(arrays(corpus, f"{entry['case']}/expected.npz").values())
    assert len(outputs) == len(expected)
    for output, wanted, tolerance in zip(outputs, expected, entry["tolerances"], strict=True):
        assert output.dtype == wanted.dtype and output.shape == wanted.shape
        np.testing.assert_allclose(output, wanted, rtol=tolerance, atol=tolerance)
    if len(outputs) == 1:
        called = machine[function](*given).numpy()
        assert called.tobytes() == outputs[0].tobytes()
    times = machine.time_evaluator("invoke_stateful", remote.cpu(), number=2, repeat=3)(function)
    assert len(times.results) == 3 and times.min > 0


@native_only
def test_shapes_change_from_run_to_run(remote, corpus):
    entry = entry_of("mlp_dynamic")
    machine = relax.VirtualMachine(uploaded(remote, corpus, entry), remote.cpu())
    given = next(iter(arrays(corpus, "mlp_dynamic/inputs.npz").values()))
    expected = arrays(corpus, "mlp_dynamic/expected.npz")["output_0"]
    for rows in (len(given), 1, 2, len(given)):
        machine.set_input("main", tvm.runtime.tensor(given[:rows], remote.cpu()))
        machine.invoke_stateful("main")
        np.testing.assert_allclose(machine.get_outputs("main").numpy(), expected[:rows], rtol=1e-5,
                                   atol=1e-6)
    wrong = tvm.runtime.tensor(np.zeros((2, 1), "float32"), remote.cpu())
    machine.set_input("main", wrong)
    assert "but float32 [2, 1] was given" in error_of(machine.invoke_stateful, "main")


@native_only
def test_saved_functions_are_timed(remote, corpus):
    entry = entry_of("mlp")
    machine = relax.VirtualMachine(uploaded(remote, corpus, entry), remote.cpu())
    given = inputs_of(remote, corpus, entry)
    machine.save_function("main", "saved", *given, include_return=False)
    times = machine.time_evaluator("saved", remote.cpu(), number=10, repeat=2)()
    assert len(times.results) == 2 and times.min > 0
    machine.save_function("main", "saved_too", *given)
    expected = arrays(corpus, "mlp/expected.npz")["output_0"]
    np.testing.assert_array_equal(machine["saved_too"]().numpy(), expected)
    name = next(iter(arrays(corpus, "mlp/inputs.npz")))
    machine.set_input("main", **{name: given[0]})
    machine.invoke_stateful("main")
    np.testing.assert_array_equal(machine.get_outputs("main").numpy(), expected)


@native_only
def test_what_a_virtual_machine_has_not(remote, corpus):
    machine = relax.VirtualMachine(uploaded(remote, corpus, entry_of("mlp")), remote.cpu())
    assert "has no inputs yet" in error_of(machine.invoke_stateful, "main")
    assert "no function 'other'" in error_of(machine.set_input, "other")
    with pytest.raises(AttributeError, match="other"):
        machine["other"]
    assert "of the client" in error_of(machine.set_instrument, "noise")
    module = remote.load_module("model.so")
    with pytest.raises(Exception, match="CPU"):
        relax.VirtualMachine(module, remote.cuda(0))
    with pytest.raises(AttributeError, match="vm_profiler"):
        module["vm_profiler_load_executable"]


def test_functions_of_a_library(remote, functions):
    remote.upload(str(functions))
    library = remote.load_module("functions.so")
    text = tvm.runtime.tensor(np.zeros(1000, "uint8"), remote.cpu())

    def described(*arguments: Any) -> str:
        library["describe"](*arguments, text)
        return text.numpy().tobytes().split(b"\0")[0].decode()

    matrix = tvm.runtime.tensor(np.zeros((2, 3), "int16"), remote.cpu())
    truths = tvm.runtime.tensor(np.zeros((2, 3), "bool"), remote.cpu())
    assert described(-7, 2**62, True, 0.1, "", "Käse is good", None) == (
        f"int -7;int {2**62};bool 1;float 0.10000000000000001;text ;text Käse is good;none;")
    assert described(bytearray(b"\0\x01"), b"abcdefghij", remote.cpu(0)) == (
        "bytes 2;bytes 10;device 1 0;")
    assert described(matrix, truths) == "tensor 0 16 2 2 3;tensor 6 8 2 2 3;"
    assert library["give_float"]() == 0.0 and library["give_float"](1) == -0.1
    assert "the stove is cold" in error_of(library["fail"])
    with pytest.raises(AttributeError, match="make_tea"):
        library["make_tea"]
    times = library.time_evaluator("give_float", remote.cpu(), number=5, repeat=4)()
    assert len(times.results) == 4


@native_only
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "bool"])
def test_tensors_come_back(remote, dtype):
    value = np.random.default_rng(2).integers(0, 2, (3, 5)).astype(dtype)
    there = tvm.runtime.tensor(value, remote.cpu())
    assert there.shape == (3, 5) and there.dtype == dtype
    np.testing.assert_array_equal(there.numpy(), value)
    other = tvm.runtime.empty((3, 5), dtype, remote.cpu())
    there.copyto(other)
    np.testing.assert_array_equal(other.numpy(), value)


@native_only
def test_files_and_devices(remote):
    remote.upload(bytearray(range(256)), "numbers")
    remote.upload(bytearray(b"few"), "few")
    assert bytes(remote.download("numbers")) == bytes(range(256))
    assert bytes(remote.download("few")) == b"few"
    assert sorted(remote.listdir(".").split(",")) == ["few", "numbers"]
    remote.remove("few")
    assert "few" in error_of(remote.download, "few")
    device = remote.cpu()
    assert device.exist and not remote.metal(0).exist
    assert device.multi_processor_count >= 1
    assert device.device_name is None or isinstance(device.device_name, str)
    device.sync()
    with pytest.raises(AttributeError, match="make_coffee"):
        remote.get_function("make_coffee")
    remote.get_function("tvm.contrib.random.random_fill")(
        tvm.runtime.empty((7,), "float32", device))


@native_only
@pytest.mark.parametrize("first", [lambda remote: remote.cl(0).exist, lambda r: r.cpu().sync(),
                                   lambda r: tvm.runtime.empty((4,), "int8", r.cpu()).numpy(),
                                   lambda r: r.get_function("tvm.rpc.server.listdir")(".")])
def test_whatever_a_client_does_first_tells_its_encoding(server, first):
    remote = rpc.connect(server.host, server.port, "kitchen")
    first(remote)
    np.testing.assert_array_equal(tvm.runtime.tensor(np.arange(3), remote.cpu()).numpy(), [0, 1, 2])


@native_only
def test_constructors_are_refused(server):
    with pytest.raises(Exception, match="is not offered"):
        rpc.connect(server.host, server.port, "kitchen",
                    session_constructor_args=["rpc.Connect", "localhost", 1, "x", False])


@native_only
def test_a_crash_and_an_endless_call_reach_the_client(start_server, functions):
    server = start_server("--call-timeout", "1", "--max-sessions", "2")
    for name, why in (("crash", "SIGSEGV"), ("loop", "longer than 1 s")):
        remote = rpc.connect(server.host, server.port)
        remote.upload(str(functions))
        assert why in error_of(remote.load_module("functions.so")[name])


@native_only
def test_through_a_tracker(start_server, tracker, corpus):
    server = start_server("--key", "board", "--tracker", f"127.0.0.1:{tracker.port}")
    session = rpc.connect_tracker("127.0.0.1", tracker.port)
    for _ in range(2):  # the server registers again
        remote = session.request("board", session_timeout=30)
        entry = entry_of("mlp")
        machine = relax.VirtualMachine(uploaded(remote, corpus, entry), remote.cpu())
        output = machine["main"](*inputs_of(remote, corpus, entry)).numpy()
        np.testing.assert_array_equal(output, arrays(corpus, "mlp/expected.npz")["output_0"])
        del machine, remote
    assert "board" in session.text_summary()
    server.wait_until_idle()
