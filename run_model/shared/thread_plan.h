// How many threads run the model, and which CPUs they may use.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/thread_pool.h>

namespace run_model {

// Which part of a machine with several kinds of cores: see below.
enum class ClusterChoice { kDefault, kBig, kLittle, kMiddle, kPrime, kAll };

struct ThreadSettings {
  int threads = 0;          // --threads; 0: as many as suit this machine
  int instances = 1;        // executors at once, which share the cores unless --threads says
  std::vector<int> cpus{};  // --cpus, ascending; empty: not given
  ClusterChoice cluster = ClusterChoice::kDefault;
  std::optional<int> spin_microseconds{};  // --spin; nothing: the pool's default
  bool sweep = false;                      // --sweep threads: run_thread_sweep() instead of a run
};

struct ThreadPlan {
  int threads = 1;
  // The CPUs that the threads may use, ascending. Unless `restricted`, these are just the CPUs that
  // the process may use anyway, and nothing is set.
  std::vector<int> cpus;
  bool restricted = false;
  std::string cluster;  // "big", "prime" …; empty on a machine whose cores are all of one kind
  std::string reason;   // one phrase for a person: why so many, and why these
  std::vector<std::string> notices;  // what was asked for and could not be done to the letter
  int spin_microseconds = 0;         // how long an idle thread waits before it sleeps
};

inline constexpr double kMuchWeaker = 0.8;

// Clusters are made of the CPUs that this process may use, see runtime/cpu/clusters.h. With two or
// more of them:
//   little  the weakest cluster
//   big     all others (of three clusters: the middle and the prime one)
//   prime   the strongest cluster
//   middle  all between little and prime; of two clusters there is none, and big is taken
//   all     every CPU
// On a machine whose cores are all of one kind each of these is every CPU, with a notice. Without a
// choice: big, if little cores have less than kMuchWeaker of the strongest one's strength and no
// more threads are asked for than big has CPUs; else every CPU. A loop is cut into equal parts, so
// that the slowest core decides when it ends.
//
// The number of threads, if not given by --threads, TVM_NUM_THREADS or else OMP_NUM_THREADS: one
// for each physical core of the chosen CPUs, but no more than the cgroup's quota allows. A number
// that is given is used as it is, with a notice where the quota or the CPUs are fewer.
//
// Throws Error(kUsage) for CPUs that this process may not use, listing those that it may.
// `root` stands for "/" in tests, `allowed` for the process's CPU mask.
ThreadPlan make_thread_plan(const ThreadSettings& settings);
ThreadPlan make_thread_plan(const ThreadSettings& settings, const std::vector<int>& allowed,
                            const std::filesystem::path& root);

// Where the plan is restricted, limits the calling thread, and with it all that it starts from now
// on, to the plan's CPUs; then starts the pool. Call it before other threads are started.
std::shared_ptr<ThreadPool> start_threads(const ThreadPlan& plan);

}  // namespace run_model
