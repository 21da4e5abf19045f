// How long a call takes, measured as TVM measures it, and with cold caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <run_model/rpc/function.h>

namespace run_model::rpc {

struct Timing {
  std::int64_t number = 1;                        // calls in a row, of which the mean is taken
  std::int64_t repeat = 1;                        // means to take
  std::int64_t min_repeat_ms = 0;                 // `number` grows until a row takes this long …
  std::int64_t limit_zero_time_iterations = 100;  // … or took no time at all this often
  std::int64_t cooldown_interval_ms = 0;          // pause after every repeats_to_cooldown rows
  std::int64_t repeats_to_cooldown = 1;
  std::int64_t cache_flush_bytes = 0;  // copied from one place to another before each row
};

// Arguments [first, first + count) as TVM orders them: number, repeat, min_repeat_ms; since 0.9
// cooldown_interval_ms and repeats_to_cooldown; since 0.10 limit_zero_time_iterations before these
// two. Throws Error(kMismatch) for another count, or a value that makes no sense.
inline constexpr std::size_t kTimingArgumentsOf08 = 3;
inline constexpr std::size_t kTimingArgumentsOf09 = 5;
inline constexpr std::size_t kTimingArguments = 6;
Timing timing_arguments(const Arguments& arguments, std::size_t first, std::size_t count);

// Seconds of one call, for each repetition. `call` is called once before anything is measured, and
// `before_repeat`, if set, before each row of calls, and `after_calls` after each, within the time:
// where calls only start work that somebody has to wait for. The procedure is that of TVM's
// WrapTimeEvaluator (profiling.cc, v0.18.0).
std::vector<double> measure(const std::function<void()>& call, const Timing& timing,
                            const std::function<void()>& before_repeat = {},
                            const std::function<void()>& after_calls = {});

// As clients take them: the doubles one after the other.
Bytes bytes_of(const std::vector<double>& seconds);

// Gets bytes out of the CPU's caches, so that what reads them next is measured as the first time.
// By instructions for it on x86-64 and AArch64, where other bytes stay cached. Other CPUs have none
// for programs: there, all that is cached is pushed out by reading kFlushBytes of other memory.
inline constexpr std::size_t kFlushBytes = std::size_t{16} << 20;
void flush_from_caches(const std::vector<std::span<const std::byte>>& areas);

}  // namespace run_model::rpc
