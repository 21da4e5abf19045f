// How many threads make sense on this machine, from what Linux tells about it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace run_model {

// The CPU numbers that the calling thread may run on (sched_getaffinity), never empty.
std::vector<int> allowed_cpus();

// Lets the calling thread, and those that it starts from now on, run on these ascending CPU numbers
// only. Throws Error(kUsage) when the system refuses.
void restrict_to_cpus(std::span<const int> cpus);

// Number of physical cores behind `cpus`, by the sibling lists in <root>/sys/devices/system/cpu;
// a CPU without such a list counts as a core of its own.
int physical_cores(std::span<const int> cpus, const std::filesystem::path& root = "/");

// The CPU quota of this process's cgroup or the tightest of its ancestors, in CPUs rounded up, for
// cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us); nothing where there is no limit.
std::optional<int> cgroup_cpu_limit(const std::filesystem::path& root = "/");

}  // namespace run_model
