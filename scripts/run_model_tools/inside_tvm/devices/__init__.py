"""Code for GPUs, made by TVM 0.18: generators, schedules, and what the code needs of a device."""
