#include "run_model/run_model/machine/thread_flags.h"

#include <gflags/gflags.h>

#include <array>
#include <utility>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/text.h"
#include "run_model/shared/arguments.h"
#include "runtime/cpu/list.h"

DEFINE_int32(threads, 0, "number of threads; 0 for as many as suit this machine");
DEFINE_string(cpus, "", "the CPUs to run on, as in 0,2-3");
DEFINE_string(cluster, "", "the cores to run on: big, little, middle, prime or all");
DEFINE_int32(spin, 100, "microseconds that an idle thread waits before it sleeps");
DEFINE_string(sweep, "", "threads: try the sensible settings of threads and recommend one");

namespace run_model {
namespace {

// A second: more would be a program that never lets go of the CPUs.
constexpr int kLongestSpin = 1'000'000;

[[noreturn]] void fail(const std::string& message,
                       const std::string& hint = "run_model --help shows the usage") {
  throw Error(ErrorKind::kUsage, message, hint);
}

void check_range(const char* flag, int value, int highest) {
  if (value >= 0 && value <= highest) return;
  fail("--" + std::string(flag) + " is " + std::to_string(value) + ", expected 0 to " +
       std::to_string(highest));
}

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
  fail("--cluster is " + in_quotes(name) + ", expected big, little, middle, prime or all");
}

}  // namespace

ThreadSettings read_thread_settings() {
  ThreadSettings settings;
  check_range("threads", FLAGS_threads, ThreadPool::kMaxThreads);
  settings.threads = FLAGS_threads;
  if (flag_is_set("cpus")) {
    const std::optional<std::vector<int>> cpus = parse_cpu_list(FLAGS_cpus);
    if (!cpus) {
      fail("--cpus is " + in_quotes(FLAGS_cpus) + ", expected numbers and ranges as in 0,2-3");
    }
    settings.cpus = *cpus;
  }
  if (flag_is_set("cluster")) settings.cluster = parse_cluster(FLAGS_cluster);
  if (flag_is_set("cpus") && flag_is_set("cluster")) {
    fail("--cpus and --cluster both say where to run", "give one of them");
  }
  if (flag_is_set("spin")) {
    check_range("spin", FLAGS_spin, kLongestSpin);
    settings.spin_microseconds = FLAGS_spin;
  }
  if (flag_is_set("sweep")) {
    if (FLAGS_sweep != "threads")
      fail("--sweep is " + in_quotes(FLAGS_sweep) + ", expected threads");
    for (const char* other :
         {"times", "profile", "profile_csv", "profile_trace", "profile_html", "profile_json"}) {
      if (flag_is_set(other)) {
        fail("--sweep and --" + std::string(other) + " do not go together",
             "run again with the flags that the sweep recommends");
      }
    }
    settings.sweep = true;
  }
  return settings;
}

}  // namespace run_model
