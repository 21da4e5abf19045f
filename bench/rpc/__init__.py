"""The parts of rpc_vs_tvm."""
