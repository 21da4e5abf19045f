"""The kernels in a TVM without Relay: networks are read from Relax, and go back to it."""
