"""Shared by the tests that drive the RPC server with today's TVM; run with `run_pytest --relax`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import server_fixtures

remote, server = server_fixtures.remote, server_fixtures.server
start_server, tracker = server_fixtures.start_server, server_fixtures.tracker
