"""Networks for GPUs by TVM 0.18: schedules, what kernels need of a device, generators (code/)."""
