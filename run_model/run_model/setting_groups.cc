#include "run_model/run_model/setting_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/text.h"
#include "run_model/run_model/flags.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/formatted.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

constexpr int kMaxRepeat = 1'000'000;
constexpr int kMaxNumber = 1'000'000;
// Each takes the memory of its activations and a thread at least.
constexpr int kMaxInstances = 256;
constexpr double kMaxSeconds = 1e6;
constexpr double kMaxFps = 1e5;
// Enough for any useful interval, and a limit to what --until-ci takes where it is never reached.
constexpr int kRepeatUntilInterval = 100'000;
constexpr double kSecondsUntilInterval = 60.0;
// Slow models on slow boards: nobody who did not ask for 100 runs should wait minutes for them.
constexpr double kSecondsByDefault = 10.0;
// A second: more would be a program that never lets go of the CPUs.
constexpr int kLongestSpin = 1'000'000;

void check_range(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return;
  refuse(flag_spelling(name) + " is " + std::to_string(value) + ", expected " +
         std::to_string(least) + " to " + std::to_string(most));
}

void check_positive(const char* name, double value, double most) {
  if (!flag_is_set(name) || (value > 0 && value <= most)) return;
  refuse(flag_spelling(name) +
         formatted(" is %g, expected a number above 0 and up to %.0f", value, most));
}

bool any_set(std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), flag_is_set);
}

void refuse_contradictions() {
  if (run_flags.cold_cache && run_flags.number > 1) {
    refuse("--cold-cache and --number contradict each other: only the first run of a sample would "
           "find the caches empty");
  }
  if (run_flags.fps > 0 && run_flags.number > 1) {
    refuse("--fps and --number contradict each other: each run has a time to start at");
  }
  if (run_flags.fps > 0 && run_flags.cold_cache) {
    refuse(
        "--fps and --cold-cache contradict each other: emptying the caches takes the time between "
        "the runs");
  }
  for (const char* other : {"cold_cache", "fps"}) {
    if (run_flags.instances == 1 || !flag_is_set(other)) continue;
    refuse("--instances and " + flag_spelling(other) +
           " contradict each other: what one of them does disturbs the others");
  }
  if (run_flags.max_seconds > 0 && run_flags.min_seconds > run_flags.max_seconds) {
    refuse("--min-seconds is greater than --max-seconds");
  }
}

// The choices are those of the flag.
ClusterChoice parse_cluster(const std::string& name) {
  constexpr std::array<std::pair<const char*, ClusterChoice>, 5> kChoices{{
      {"big", ClusterChoice::kBig},
      {"little", ClusterChoice::kLittle},
      {"middle", ClusterChoice::kMiddle},
      {"prime", ClusterChoice::kPrime},
      {"all", ClusterChoice::kAll},
  }};
  for (const auto& [known, choice] : kChoices) {
    if (name == known) return choice;
  }
  return ClusterChoice::kDefault;
}

double tolerance(const char* name, double value) {
  if (std::isfinite(value) && value >= 0) return value;
  refuse(flag_spelling(name) + " is " + std::to_string(value) +
         ", expected a number that is not negative");
}

}  // namespace

void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorKind::kUsage, message, hint);
}

MeasureSettings read_measure_settings() {
  check_range("repeat", run_flags.repeat, 1, kMaxRepeat);
  check_range("number", run_flags.number, 1, kMaxNumber);
  check_range("instances", run_flags.instances, 1, kMaxInstances);
  check_range("warmup", run_flags.warmup, 0, kMaxRepeat);
  check_positive("warmup_seconds", run_flags.warmup_seconds, kMaxSeconds);
  check_positive("min_seconds", run_flags.min_seconds, kMaxSeconds);
  check_positive("max_seconds", run_flags.max_seconds, kMaxSeconds);
  check_positive("fps", run_flags.fps, kMaxFps);
  refuse_contradictions();

  MeasureSettings settings;
  settings.wanted = any_set({"repeat", "number", "instances", "warmup", "warmup_seconds",
                             "min_seconds", "max_seconds", "until_ci", "times"}) ||
                    run_flags.print_time || run_flags.cold_cache || run_flags.fps > 0;
  settings.repeat = static_cast<std::size_t>(run_flags.repeat);
  settings.number = run_flags.number;
  settings.instances = run_flags.instances;
  settings.min_seconds = run_flags.min_seconds;
  settings.max_seconds = run_flags.max_seconds;
  settings.warm_up_runs = static_cast<std::size_t>(run_flags.warmup);
  settings.warm_up_seconds = run_flags.warmup_seconds;
  settings.cold_cache = run_flags.cold_cache;
  settings.fps = run_flags.fps;
  settings.times = run_flags.times;
  if (flag_is_set("until_ci")) {
    settings.until_interval = parse_percentage("until-ci", run_flags.until_ci);
    if (*settings.until_interval == 0) refuse("--until-ci is 0: no interval is that narrow");
    if (!flag_is_set("repeat")) settings.repeat = kRepeatUntilInterval;
    if (!flag_is_set("max_seconds")) settings.max_seconds = kSecondsUntilInterval;
  } else if (!any_set({"repeat", "min_seconds", "max_seconds"})) {
    settings.max_seconds = kSecondsByDefault;
  }
  return settings;
}

ThreadSettings read_thread_settings() {
  ThreadSettings settings;
  check_range("threads", run_flags.threads, 0, ThreadPool::kMaxThreads);
  settings.threads = run_flags.threads;
  settings.instances = run_flags.instances;
  if (flag_is_set("cpus")) {
    const std::optional<std::vector<int>> cpus = parse_cpu_list(run_flags.cpus);
    if (!cpus) {
      refuse("--cpus is " + in_quotes(run_flags.cpus) +
             ", expected numbers and ranges as in 0,2-3");
    }
    settings.cpus = *cpus;
  }
  if (flag_is_set("cluster")) settings.cluster = parse_cluster(run_flags.cluster);
  if (flag_is_set("cpus") && flag_is_set("cluster")) {
    refuse("--cpus and --cluster both say where to run", "give one of them");
  }
  if (flag_is_set("spin")) {
    check_range("spin", run_flags.spin, 0, kLongestSpin);
    settings.spin_microseconds = run_flags.spin;
  }
  if (flag_is_set("sweep")) {
    for (const char* other : {"times", "instances", "profile", "profile_csv", "profile_trace",
                              "profile_html", "profile_json"}) {
      if (flag_is_set(other)) {
        refuse("--sweep and " + flag_spelling(other) + " do not go together",
               "run again with the flags that the sweep recommends");
      }
    }
    settings.sweep = true;
  }
  return settings;
}

ProfileSettings read_profile_settings() {
  ProfileSettings settings;
  settings.csv = run_flags.profile_csv;
  settings.trace = run_flags.profile_trace;
  settings.html = run_flags.profile_html;
  settings.json = run_flags.profile_json;
  settings.table = run_flags.profile;
  settings.wanted =
      settings.table || any_set({"profile_csv", "profile_trace", "profile_html", "profile_json"});

  settings.order = run_flags.profile_sort == "time" ? ProfileOrder::kTime : ProfileOrder::kRunning;
  if (run_flags.profile_top < 0) {
    refuse("--profile-top is " + std::to_string(run_flags.profile_top) + ", expected 0 or more");
  }
  settings.top = static_cast<std::size_t>(run_flags.profile_top);
  for (const char* name : {"profile_sort", "profile_top"}) {
    if (!flag_is_set(name) || settings.table) continue;
    refuse(flag_spelling(name) + " has no meaning without --profile");
  }
  return settings;
}

CompareSettings read_compare_settings() {
  return {tolerance("atol", run_flags.atol), tolerance("rtol", run_flags.rtol),
          parse_percentage("noise", run_flags.noise)};
}

}  // namespace run_model
