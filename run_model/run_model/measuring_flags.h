// The part of the table of flags that says what is measured, how, and how the figures are shown:
// included by flags.cc only, where the rest is.
#pragma once

#include "run_model/run_model/flags.h"

namespace run_model {

inline constexpr Flag kThreadFlags[] = {
    {.name = "threads",
     .storage = &run_flags.threads,
     .value = "N",
     .words = "default: TVM_NUM_THREADS, or one for each physical core at hand, but no more than "
              "the cgroup's quota of CPU time allows",
     .more = "OMP_NUM_THREADS is taken where TVM_NUM_THREADS is not set."},
    {.name = "cluster",
     .storage = &run_flags.cluster,
     .value = "NAME",
     .words = "on a machine with several kinds of cores: little (the weakest), prime (the "
              "strongest), middle (those between), big (all but little) or all. Default: big, if "
              "little cores are much weaker and no more threads are asked for",
     .more = "Much weaker is less than 80 % of the strongest one's strength; without weaker cores, "
             "and with more threads than there are big cores, the default is all. Where there are "
             "just two kinds, middle is big; where all cores are of one kind, each of these is "
             "every CPU, with a warning.",
     .choices = "big little middle prime all"},
    {.name = "cpus",
     .storage = &run_flags.cpus,
     .value = "LIST",
     .words = "run on these CPUs only, as in 0,2-3"},
    {.name = "spin",
     .storage = &run_flags.spin,
     .value = "N",
     .standard = "100",
     .words = "microseconds that an idle thread waits before it sleeps (default: {})",
     .more = "Waiting makes small layers faster, and takes CPU time."},
    {.name = "sweep",
     .storage = &run_flags.sweep,
     .value = "threads",
     .words = "measure every sensible setting of these flags by turns, and recommend one",
     .more =
         "Each is measured as the flags of the next group say. Of those that are as fast as the "
         "fastest, the one with the fewest threads is recommended.",
     .choices = "threads"},
};

inline constexpr Flag kTimeFlags[] = {
    {.name = "print_time",
     .storage = &run_flags.print_time,
     .words = "show min, median, mean, p90, p95, p99, max and standard deviation"},
    {.name = "repeat",
     .storage = &run_flags.repeat,
     .value = "N",
     .standard = "100",
     .words = "take N samples (default: {}, or what fits into 10 seconds)"},
    {.name = "number",
     .storage = &run_flags.number,
     .value = "N",
     .standard = "1",
     .words = "a sample is the mean of N runs (default: {})",
     .more = "They are started one straight after the other."},
    {.name = "instances",
     .storage = &run_flags.instances,
     .value = "N",
     .standard = "1",
     .words =
         "run N copies of the model at once, each with its own threads, and show the throughput "
         "of all besides (default: {})",
     .more = "Without --threads they share the cores. The samples are those of all copies, and the "
             "first one's are counted by --repeat."},
    {.name = "warmup",
     .storage = &run_flags.warmup,
     .value = "N",
     .standard = "3",
     .words = "runs before the first sample (default: {})"},
    {.name = "warmup_seconds",
     .storage = &run_flags.warmup_seconds,
     .value = "S",
     .words = "warm up for at least S seconds as well"},
    {.name = "min_seconds",
     .storage = &run_flags.min_seconds,
     .value = "S",
     .words = "go on beyond --repeat until S seconds are over"},
    {.name = "max_seconds",
     .storage = &run_flags.max_seconds,
     .value = "S",
     .words = "stop after S seconds, be --repeat reached or not"},
    {.name = "until_ci",
     .storage = &run_flags.until_ci,
     .value = "P%",
     .words = "stop as soon as the 95 % interval of the median is at most P % of it wide, after 60 "
              "seconds (or --max-seconds) in any case"},
    {.name = "cold_cache",
     .storage = &run_flags.cold_cache,
     .words = "before each run, empty the CPU's caches of the model",
     .more = "That is done outside of the run's time, by reading twice the size of the last-level "
             "caches on every thread."},
    {.name = "fps",
     .storage = &run_flags.fps,
     .value = "N",
     .words = "start N runs a second and sleep in between, as with a camera; runs that take too "
              "long make starts be missed, which are counted",
     .more = "With a folder of pictures, each of them is started so."},
    {.name = "times",
     .storage = &run_flags.times,
     .value = "FILE",
     .words = "write every sample to this text file, one a line",
     .kind = ValueKind::kFile},
};

inline constexpr Flag kMemoryFlags[] = {
    {.name = "print_memory",
     .storage = &run_flags.print_memory,
     .words = R"(the process's memory, as the kernel counts it, at these stages:
  start             before the artifact is opened
  loaded            library, graph and parameters are opened and checked
  parameters bound  the model is ready to run
  first run         after it
  steady            after all repeated runs (without any, after two more)
  peak              the most there ever was, also between stages
resident: in memory now; of this, anonymous: heap, stacks and what was written, file-backed: pages of
files, which the system can drop and read again, and shared memory. PSS: resident, but a page that n
processes use counts 1/n. swapped: moved out. Then what the runtime asked for itself: parameters used
in place in their file or copied, activations (inputs, outputs and everything between) and workspaces
(scratch of functions))"},
};

inline constexpr Flag kProfileFlags[] = {
    {.name = "profile",
     .storage = &run_flags.profile,
     .words = "show for each node p50 and p95 of its time, its share, GFLOP/s where the operations "
              "are known, GB/s, its first output and its function; then the sum over operator "
              "families, and how much memory is needed at which node"},
    {.name = "profile_sort",
     .storage = &run_flags.profile_sort,
     .value = "NAME",
     .standard = "time",
     .words = "{} (default) or order, in which the nodes run",
     .choices = "time order"},
    {.name = "profile_top",
     .storage = &run_flags.profile_top,
     .value = "N",
     .words = "show only the first N rows"},
    {.name = "profile_html",
     .storage = &run_flags.profile_html,
     .value = "FILE",
     .words = "write a page that draws it: time by node and family, memory, sortable table",
     .more = "The page needs no network.",
     .kind = ValueKind::kFile},
    {.name = "profile_csv",
     .storage = &run_flags.profile_csv,
     .value = "FILE",
     .words = "write all there is of every node, with commas between",
     .kind = ValueKind::kFile},
    {.name = "profile_json",
     .storage = &run_flags.profile_json,
     .value = "FILE",
     .words = "write all there is of every node as JSON",
     .kind = ValueKind::kFile},
    {.name = "profile_trace",
     .storage = &run_flags.profile_trace,
     .value = "FILE",
     .words = "write the fastest run for Perfetto or chrome://tracing",
     .more = "It is in Chrome's trace event format.",
     .kind = ValueKind::kFile},
};

inline constexpr Flag kCompareFlags[] = {
    {.name = "compare",
     .storage = &run_flags.compare,
     .words =
         "of times, the ratio with its 95 % interval, and whether the second is faster, slower, "
         "or neither; of arrays, the largest differences",
     .more = "The ratio is that of the second to the first. What is not the same about the two "
             "measurements is named."},
    {.name = "noise",
     .storage = &run_flags.noise,
     .value = "P%",
     .standard = "2%",
     .words = "a smaller difference in time is none (default: {})"},
    {.name = "atol",
     .storage = &run_flags.atol,
     .value = "X",
     .standard = "1e-8",
     .words = "arrays agree within atol + rtol * |first| (default: {})"},
    {.name = "rtol",
     .storage = &run_flags.rtol,
     .value = "X",
     .standard = "1e-5",
     .words = "the other part of that (default: {})"},
};

}  // namespace run_model
