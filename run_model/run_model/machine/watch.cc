#include "run_model/run_model/machine/watch.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/system_file.h"
#include "base/text.h"
#include "run_model/run_model/machine/context.h"
#include "run_model/shared/formatted.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// Sensors that a machine may have; more are not looked at.
constexpr int kMostSensors = 64;

// Degrees Celsius: boards throttle from 80 to 85 on, and a rise this large may still go on.
constexpr double kHot = 80;
constexpr double kMuchWarmer = 10;

void sample_cpus(MachineSample& sample, const fs::path& root) {
  for (int cpu : allowed_cpus()) {
    if (const auto khz = read_number(cpu_file(cpu, "cpufreq/scaling_cur_freq", root))) {
      sample.lowest_khz = std::min(*khz, sample.lowest_khz.value_or(*khz));
      sample.highest_khz = std::max(*khz, sample.highest_khz.value_or(0));
    }
    for (const char* counter :
         {"thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"}) {
      if (const auto count = read_number(cpu_file(cpu, counter, root))) {
        sample.cpu_throttled = sample.cpu_throttled.value_or(0) + *count;
      }
    }
  }
}

void sample_sensors(MachineSample& sample, const fs::path& root) {
  for (int zone = 0; zone < kMostSensors; ++zone) {
    const std::string folder = "sys/class/thermal/thermal_zone" + std::to_string(zone);
    const auto thousandths = read_number(root / (folder + "/temp"));
    if (!thousandths) {
      if (first_line(root / (folder + "/type")).empty()) break;
      continue;  // below zero, or switched off
    }
    const double degrees = static_cast<double>(*thousandths) / 1000;
    sample.hottest = std::max(degrees, sample.hottest.value_or(degrees));
  }
  // Since the board was started: under-voltage (bit 16), capped frequency (17), throttled (18), too
  // hot (19); see Raspberry Pi's documentation of vcgencmd get_throttled. The kernel gives the
  // number in hexadecimal without 0x.
  const std::string text = first_line(root / "sys/devices/platform/soc/soc:firmware/get_throttled");
  if (const auto bits = hex_number(text)) sample.board_events = *bits >> 16 & 0xf;
}

// Of this process's group in version 2; inside a container the group is the mount itself.
std::optional<std::uint64_t> quota_throttled(const fs::path& root) {
  const std::string groups = read_system_file(root / "proc/self/cgroup");
  const std::size_t version_2 = groups.find("0::/");
  std::string group;
  if (version_2 != groups.npos) {
    const std::size_t start = version_2 + 3;
    group = groups.substr(start, groups.find('\n', start) - start);
  }
  for (const std::string& folder : {"sys/fs/cgroup" + group, std::string("sys/fs/cgroup")}) {
    const std::string stat = read_system_file(root / (folder + "/cpu.stat"));
    std::string_view count = field(stat, "nr_throttled");
    if (const auto value = take_number<std::uint64_t>(count)) return value;
  }
  return std::nullopt;
}

// proc(5), /proc/stat: "cpu user nice system idle iowait irq softirq steal …" in ticks.
void sample_ticks(MachineSample& sample, const fs::path& root) {
  std::string line = first_line(root / "proc/stat");
  if (!line.starts_with("cpu ")) return;
  const char* position = line.data() + 4;
  const char* const last = line.data() + line.size();
  std::uint64_t all = 0;
  for (int column = 0; column < 8; ++column) {
    while (position != last && *position == ' ') ++position;
    std::uint64_t ticks = 0;
    const auto [end, error] = std::from_chars(position, last, ticks);
    if (error != std::errc()) return;
    position = end;
    all += ticks;
    if (column == 7) {
      sample.stolen_ticks = ticks;
      sample.all_ticks = all;
    }
  }
}

std::string whole(double value) { return formatted("%.0f", value); }

bool rose(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after) {
  return before && after && *after > *before;
}

}  // namespace

MachineSample sample_machine(const fs::path& root) {
  MachineSample sample;
  sample_cpus(sample, root);
  sample_sensors(sample, root);
  sample_ticks(sample, root);
  sample.quota_throttled = quota_throttled(root);
  return sample;
}

void compare_samples(const MachineSample& before, const MachineSample& after,
                     MachineContext& context) {
  const auto warn = [&](std::string text) { context.warnings.push_back(std::move(text)); };
  context.lowest_khz = after.lowest_khz;
  context.highest_khz = after.highest_khz;
  if (before.highest_khz && after.highest_khz) {
    const double ratio =
        static_cast<double>(*after.highest_khz) / static_cast<double>(*before.highest_khz);
    if (ratio < 0.95 || ratio > 1.05) {
      warn("the CPU's frequency changed from " + megahertz(*before.highest_khz) + " to " +
           megahertz(*after.highest_khz) + " while measuring");
    }
  }
  if (rose(before.cpu_throttled, after.cpu_throttled)) {
    warn("the CPU slowed itself down while measuring, because of heat or power");
  }
  if (after.board_events && (*after.board_events & ~before.board_events.value_or(0)) != 0) {
    warn("the board slowed the CPU down while measuring, because of heat or a weak power supply");
  } else if (after.board_events && *after.board_events != 0) {
    warn("since it was started the board has slowed the CPU down, because of heat or a weak power "
         "supply");
  }
  if (rose(before.quota_throttled, after.quota_throttled)) {
    warn("the system halted this process while measuring, because its quota of CPU time was used "
         "up");
  }
  if (before.hottest && after.hottest && *after.hottest >= *before.hottest + kMuchWarmer) {
    warn("the hottest sensor rose from " + whole(*before.hottest) + " to " + whole(*after.hottest) +
         " degrees Celsius while measuring");
  } else if (after.hottest && *after.hottest >= kHot) {
    warn("the hottest sensor is at " + whole(*after.hottest) + " degrees Celsius");
  }
  if (rose(before.stolen_ticks, after.stolen_ticks) && rose(before.all_ticks, after.all_ticks)) {
    const double share = static_cast<double>(*after.stolen_ticks - *before.stolen_ticks) /
                         static_cast<double>(*after.all_ticks - *before.all_ticks);
    if (share > 0.01) {
      warn("other virtual machines took " + whole(share * 100) +
           " % of the CPU time while measuring");
    }
  }
}

}  // namespace run_model
