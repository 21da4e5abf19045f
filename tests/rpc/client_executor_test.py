"""TVM's graph executor and its debug executor on the board, driven by TVM's own Python."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from board import native_only
from tvm import relay
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm_client import error_of, exported, params_bytes, upload, with_json
from workloads import Network, check_result, run_network

# The graph executor.

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


def run_network_quietly(executor, network: Network):
    executor.set_input("data", network.picture)
    executor.run(number=1)
    return executor.get_output(0).numpy()


@native_only
def test_the_debug_executor_of_a_single_file(remote, network, tmp_path):
    library = upload(remote, network.export)
    executor = debug_executor.GraphModuleDebug(
        library["debug_create"]("default", remote.cpu()), [remote.cpu()],
        library["get_graph_json"](), str(tmp_path))
    check_result(run_network_quietly(executor, network), network.expected)
