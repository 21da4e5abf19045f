#include "runtime/cpu/topology.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <run_model/error.h>
#include "base/system_file.h"
#include "base/text.h"

namespace run_model {
namespace {

// A number at the start of `text`, which is then taken off.
std::optional<int> take_cpu_number(std::string_view& text) {
  const auto value = take_number<int>(text);
  return value && *value >= 0 && *value <= kHighestCpu ? value : std::nullopt;
}

namespace fs = std::filesystem;

std::optional<double> quota_in_cpus(std::optional<std::int64_t> quota,
                                    std::optional<std::int64_t> period) {
  // -1 in version 1 and "max" in version 2 stand for no limit.
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> limit_of_group(const fs::path& directory) {
  std::string line = first_line(directory / "cpu.max");
  if (std::size_t space = line.find(' '); space != std::string::npos) {
    return quota_in_cpus(whole_number<std::int64_t>(line.substr(0, space)),
                         whole_number<std::int64_t>(line.substr(space + 1)));
  }
  return quota_in_cpus(whole_number<std::int64_t>(first_line(directory / "cpu.cfs_quota_us")),
                       whole_number<std::int64_t>(first_line(directory / "cpu.cfs_period_us")));
}

// The tightest limit of the group `name` below `mount` and of the groups above it. In a container
// the name may be that of the host's hierarchy, which is not visible: those levels just do not
// exist.
std::optional<double> tightest_limit(const fs::path& mount, const fs::path& name) {
  std::optional<double> tightest = limit_of_group(mount);
  fs::path directory = mount;
  for (const fs::path& part : name.relative_path()) {
    if (part == "..") break;
    directory /= part;
    const std::optional<double> limit = limit_of_group(directory);
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
  }
  return tightest;
}

// In CPUs, of the group and all above it.
std::optional<double> cgroup_quota(const fs::path& root) {
  std::string groups = read_system_file(root / "proc/self/cgroup", std::size_t{1} << 16);
  std::optional<double> tightest;
  // Lines are "0::/path" for version 2 and "4:cpu,cpuacct:/path" for version 1.
  for (std::size_t start = 0; start < groups.size();) {
    const std::size_t newline = std::min(groups.find('\n', start), groups.size());
    const std::string line = groups.substr(start, newline - start);
    start = newline + 1;
    std::size_t first = line.find(':');
    std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    fs::path mount = root / "sys/fs/cgroup";
    if (controllers.find(",cpu,") != std::string::npos) {
      mount /= "cpu";
    } else if (controllers != ",,") {
      continue;
    }
    const std::optional<double> limit = tightest_limit(mount, line.substr(second + 1));
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
  }
  return tightest;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  text = trimmed(text);
  std::set<int> cpus;
  while (true) {
    const std::optional<int> first = take_cpu_number(text);
    if (!first) return std::nullopt;
    std::optional<int> last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_cpu_number(text);
    }
    if (!last || *last < *first) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
    if (text.empty()) return std::vector<int>(cpus.begin(), cpus.end());
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

std::string cpu_list_text(std::span<const int> cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[first]);
    if (last > first) text += "-" + std::to_string(cpus[last]);
    first = last + 1;
  }
  return text;
}

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask smaller than its own, which can exceed CPU_SETSIZE.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(capacity),
                                                         [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    std::size_t bytes = CPU_ALLOC_SIZE(capacity);
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      std::vector<int> cpus;
      for (int cpu = 0; cpu < capacity; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(cpu);
      }
      if (!cpus.empty()) return cpus;
      break;
    }
    if (errno != EINVAL) break;
  }
  std::vector<int> cpus(std::max(1U, std::thread::hardware_concurrency()));
  for (std::size_t i = 0; i < cpus.size(); ++i) cpus[i] = static_cast<int>(i);
  return cpus;
}

void restrict_to_cpus(std::span<const int> cpus) {
  const int capacity = cpus.empty() ? 1 : cpus.back() + 1;
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(capacity),
                                                       [](cpu_set_t* s) { CPU_FREE(s); });
  const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
  if (set) {
    CPU_ZERO_S(bytes, set.get());
    for (int cpu : cpus) CPU_SET_S(cpu, bytes, set.get());
  }
  if (!set || sched_setaffinity(0, bytes, set.get()) != 0) {
    throw Error(ErrorKind::kUsage,
                "the system refuses to run this thread on CPUs " + cpu_list_text(cpus) + " only",
                "taskset -cp $$ shows the CPUs that this process may use");
  }
}

int physical_cores(std::span<const int> cpus, const fs::path& root) {
  std::set<std::string> cores;
  for (int cpu : cpus) {
    // The older name is still there on current kernels.
    std::string siblings = first_line(cpu_file(cpu, "topology/thread_siblings_list", root));
    cores.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

int sustained_threads(std::span<const int> cpus, const fs::path& root) {
  const auto count = static_cast<double>(cpus.size());
  return static_cast<int>(std::min(count, cgroup_quota(root).value_or(count)));
}

std::optional<int> cgroup_cpu_limit(const fs::path& root) {
  const std::optional<double> quota = cgroup_quota(root);
  if (!quota) return std::nullopt;
  return static_cast<int>(std::clamp(std::ceil(*quota), 1.0, double{1 << 20}));
}

}  // namespace run_model
