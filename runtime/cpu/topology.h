// Which CPUs there are, which of them this process may use, and how many threads make sense on
// them, from what Linux tells.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// The highest CPU number that a list may name.
inline constexpr int kHighestCpu = 65535;

// Ascending, each once; nothing for text of another form (also an empty one) and for numbers beyond
// kHighestCpu. White space around the list is passed over.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// The shortest list of these ascending numbers, with a range for two and more in a row.
std::string cpu_list_text(std::span<const int> cpus);

// The CPU numbers that the calling thread may run on (sched_getaffinity), never empty.
std::vector<int> allowed_cpus();

// Lets the calling thread, and those that it starts from now on, run on these ascending CPU numbers
// only. Throws Error(kUsage) when the system refuses.
void restrict_to_cpus(std::span<const int> cpus);

// Number of physical cores behind `cpus`, by the sibling lists in <root>/sys/devices/system/cpu;
// a CPU without such a list counts as a core of its own.
int physical_cores(std::span<const int> cpus, const std::filesystem::path& root = "/");

// How many threads can compute all the time: as many as `cpus`, and no more than the quota of
// cgroup_cpu_limit() lasts for, rounded down.
int sustained_threads(std::span<const int> cpus, const std::filesystem::path& root = "/");

// The CPU quota of this process's cgroup or the tightest of its ancestors, in CPUs rounded up, for
// cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us); nothing where there is no limit.
std::optional<int> cgroup_cpu_limit(const std::filesystem::path& root = "/");

}  // namespace run_model
