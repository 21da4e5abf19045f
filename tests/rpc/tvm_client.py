"""What the tests do with TVM's own client, unchanged, as a user does on the host."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from server_process import ServerProcess
from tvm import relay, rpc
from tvm.contrib import graph_executor
from workloads import Network


def connect(server: ServerProcess, key: str = "kitchen", **options: Any) -> rpc.RPCSession:
    return rpc.connect(server.host, server.port, key, **options)


def upload(remote, path, name=None):
    remote.upload(str(path), name)
    return remote.load_module(name or path.name)


def error_of(call, *arguments, kind=tvm.TVMError):
    with pytest.raises(kind) as caught:
        call(*arguments)
    return str(caught.value)


def exported(remote, network: Network):
    return graph_executor.GraphModule(upload(remote, network.export)["default"](remote.cpu()))


def with_json(remote, network: Network, create=graph_executor.create):
    return create(network.graph, upload(remote, network.library), remote.cpu())


def params_bytes(network: Network):
    return relay.save_param_dict(network.params)
