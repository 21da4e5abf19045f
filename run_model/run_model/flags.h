// The flags of run_model, and all that it says about itself.
#pragma once

#include <cstdint>
#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// What the command line has set, under gflags' names; the table of the manual has the defaults.
struct RunFlags {
  bool normalize = false, rgb = false, bgr = false;
  std::string mean, std, mean_order, resizer, fit, size, layout, jpeg_decoder;
  std::int32_t resize = 0, crop = 0;

  std::string task, draw, save_mask, save_map, map_format, coco, compare_with, given_outputs,
      region, detector;
  double score_threshold = 0;

  std::string inputs, outputs, calls, save_inputs, fill_mode, dump_input;
  std::uint64_t seed = 0;

  std::string target, function, device;
  bool verify = false, plan_memory = false, inspect = false, list_devices = false;

  std::int32_t threads = 0, spin = 0;
  std::string cluster, cpus, sweep;

  bool print_time = false, cold_cache = false;
  std::int32_t repeat = 0, number = 0, warmup = 0, instances = 0;
  double warmup_seconds = 0, min_seconds = 0, max_seconds = 0, fps = 0;
  std::string until_ci, times;

  bool print_memory = false;

  bool profile = false;
  std::string profile_sort, profile_html, profile_csv, profile_json, profile_trace;
  std::int32_t profile_top = 0;

  bool compare = false;
  std::string noise;
  double atol = 0, rtol = 0;

  std::int32_t topk = 0;
  bool json = false;
};

extern RunFlags run_flags;

extern const Manual kRunManual;

// Exit code of a comparison that found the second file slower or different.
inline constexpr int kExitWorse = 9;

// Exit code where some of many pictures could not be looked at.
inline constexpr int kExitSomeFailed = 10;

}  // namespace run_model
