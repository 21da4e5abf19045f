#include "run_model/run_model/measure/measure_flags.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <run_model/error.h>
#include "run_model/shared/arguments.h"

// help_text.cc says the same in the words and the order that users see.
DEFINE_int32(repeat, 100, "number of samples to time");
DEFINE_int32(number, 1, "runs in a sample, which is their mean");
DEFINE_int32(warmup, 3, "runs before the first sample");
DEFINE_double(warmup_seconds, 0, "warm up for at least so long");
DEFINE_double(min_seconds, 0, "measure for at least so long, beyond --repeat");
DEFINE_double(max_seconds, 0, "stop after so long, before --repeat is reached");
DEFINE_string(until_ci, "", "stop when the 95 % interval of the median is this narrow, as 1%");
DEFINE_bool(cold_cache, false, "empty the CPU's caches before every sample");
DEFINE_double(fps, 0, "start so many runs a second");
DEFINE_bool(print_time, false, "time repeated runs and show the statistics");
DEFINE_string(times, "", "write every sample to this text file, in milliseconds");

namespace run_model {
namespace {

constexpr int kMaxRepeat = 1'000'000;
constexpr int kMaxNumber = 1'000'000;
constexpr double kMaxSeconds = 1e6;
constexpr double kMaxFps = 1e5;
// Enough for any useful interval, and a limit to what --until-ci takes where it is never reached.
constexpr int kRepeatUntilInterval = 100'000;
constexpr double kSecondsUntilInterval = 60.0;
// Slow models on slow boards: nobody who did not ask for 100 runs should wait minutes for them.
constexpr double kSecondsByDefault = 10.0;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kUsage, message, "run_model --help shows the usage");
}

void check_range(const char* flag, int value, int least, int most) {
  if (value >= least && value <= most) return;
  fail("--" + std::string(flag) + " is " + std::to_string(value) + ", expected " +
       std::to_string(least) + " to " + std::to_string(most));
}

void check_positive(const char* name, const char* flag, double value, double most) {
  if (!flag_is_set(name) || (value > 0 && value <= most)) return;
  fail("--" + std::string(flag) + " is " + std::to_string(value) +
       ", expected a number above 0 and up to " + std::to_string(static_cast<int>(most)));
}

bool any_set(std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), flag_is_set);
}

void refuse_contradictions() {
  if (FLAGS_cold_cache && FLAGS_number > 1) {
    fail("--cold-cache and --number contradict each other: only the first run of a sample would "
         "find the caches empty");
  }
  if (FLAGS_fps > 0 && FLAGS_number > 1) {
    fail("--fps and --number contradict each other: each run has a time to start at");
  }
  if (FLAGS_fps > 0 && FLAGS_cold_cache) {
    fail("--fps and --cold-cache contradict each other: emptying the caches takes the time between "
         "the runs");
  }
  if (FLAGS_max_seconds > 0 && FLAGS_min_seconds > FLAGS_max_seconds) {
    fail("--min-seconds is greater than --max-seconds");
  }
}

}  // namespace

MeasureSettings read_measure_settings() {
  check_range("repeat", FLAGS_repeat, 1, kMaxRepeat);
  check_range("number", FLAGS_number, 1, kMaxNumber);
  check_range("warmup", FLAGS_warmup, 0, kMaxRepeat);
  check_positive("warmup_seconds", "warmup-seconds", FLAGS_warmup_seconds, kMaxSeconds);
  check_positive("min_seconds", "min-seconds", FLAGS_min_seconds, kMaxSeconds);
  check_positive("max_seconds", "max-seconds", FLAGS_max_seconds, kMaxSeconds);
  check_positive("fps", "fps", FLAGS_fps, kMaxFps);
  refuse_contradictions();

  MeasureSettings settings;
  settings.wanted = any_set({"repeat", "number", "warmup", "warmup_seconds", "min_seconds",
                             "max_seconds", "until_ci", "times"}) ||
                    FLAGS_print_time || FLAGS_cold_cache || FLAGS_fps > 0;
  settings.repeat = static_cast<std::size_t>(FLAGS_repeat);
  settings.number = FLAGS_number;
  settings.min_seconds = FLAGS_min_seconds;
  settings.max_seconds = FLAGS_max_seconds;
  settings.warm_up_runs = static_cast<std::size_t>(FLAGS_warmup);
  settings.warm_up_seconds = FLAGS_warmup_seconds;
  settings.cold_cache = FLAGS_cold_cache;
  settings.fps = FLAGS_fps;
  settings.times = FLAGS_times;
  settings.show_progress = isatty(STDERR_FILENO) == 1;
  if (flag_is_set("until_ci")) {
    settings.until_interval = parse_percentage("until-ci", FLAGS_until_ci);
    if (*settings.until_interval == 0) fail("--until-ci is 0: no interval is that narrow");
    if (!flag_is_set("repeat")) settings.repeat = kRepeatUntilInterval;
    if (!flag_is_set("max_seconds")) settings.max_seconds = kSecondsUntilInterval;
  } else if (!any_set({"repeat", "min_seconds", "max_seconds"})) {
    settings.max_seconds = kSecondsByDefault;
  }
  return settings;
}

}  // namespace run_model
