#include "run_model/run_model/settings.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <run_model/error.h>
#include <run_model/geometry.h>
#include <run_model/preprocessing.h>
#include <run_model/resize.h>
#include "base/text.h"
#include "run_model/run_model/flags.h"
#include "run_model/shared/arguments.h"

namespace run_model {
namespace {

constexpr char kUsageHint[] = "run_model --help shows the usage";

[[noreturn]] void fail(const std::string& message, const std::string& hint = kUsageHint) {
  throw Error(ErrorKind::kUsage, message, hint);
}

std::optional<int> positive_flag(const char* name, int value) {
  if (!flag_is_set(name)) return std::nullopt;
  if (value < 1 || value > kMaxImageSide) {
    fail("--" + std::string(name) + " is " + std::to_string(value) + ", expected 1 to " +
         std::to_string(kMaxImageSide));
  }
  return value;
}

PreprocessingFlags read_preprocessing_flags() {
  PreprocessingFlags flags;
  if (flag_is_set("normalize")) flags.normalize = FLAGS_normalize;
  if (FLAGS_rgb && FLAGS_bgr) fail("--rgb and --bgr contradict each other", "give one of them");
  if (FLAGS_rgb) flags.color_order = "RGB";
  if (FLAGS_bgr) flags.color_order = "BGR";
  if (flag_is_set("mean")) flags.mean = parse_triple("mean", FLAGS_mean);
  if (flag_is_set("std")) flags.std = parse_triple("std", FLAGS_std);
  if (FLAGS_mean_order != "network" && FLAGS_mean_order != "rgb") {
    fail("--mean-order is " + in_quotes(FLAGS_mean_order) + ", expected network or rgb");
  }
  flags.mean_in_rgb_order = FLAGS_mean_order == "rgb";
  flags.resizer = FLAGS_resizer;
  if (!flags.resizer.empty()) parse_resizer(flags.resizer);
  flags.fit = FLAGS_fit;
  if (!flags.fit.empty()) parse_fit(flags.fit);
  flags.resize = positive_flag("resize", FLAGS_resize);
  flags.crop = positive_flag("crop", FLAGS_crop);
  flags.layout = FLAGS_layout;
  if (!flags.layout.empty()) parse_layout(flags.layout);
  return flags;
}

// Flags that only one way of running reads: given with another one, they would do nothing.
void refuse_flags(std::initializer_list<const char*> names, const std::string& where) {
  for (const char* name : names) {
    if (!flag_is_set(name)) continue;
    std::string spelling = name;
    std::replace(spelling.begin(), spelling.end(), '_', '-');
    fail("--" + spelling + " has no meaning " + where);
  }
}

void read_picture_arguments(const std::vector<std::string>& positional, Settings& settings) {
  static constexpr std::string_view kNames[] = {"NAME", "ARTIFACTS", "IMAGE", "LABELS"};
  if (positional.size() < std::size(kNames)) {
    fail("the argument " + std::string(kNames[positional.size()]) + " is missing",
         "run_model NAME ARTIFACTS IMAGE LABELS [INPUT] classifies a picture, and --help shows "
         "more");
  }
  if (positional.size() > 5) fail("there is no use for the argument " + in_quotes(positional[5]));
  settings.image = positional[2];
  settings.labels = positional[3];
  if (positional.size() == 5) settings.input_name = positional[4];
}

void read_tensor_arguments(const std::vector<std::string>& positional) {
  if (positional.size() < 2) {
    fail("NAME or ARTIFACTS is missing",
         "run_model NAME ARTIFACTS --inputs IN.npz --outputs OUT.npz runs a model on tensors");
  }
  if (positional.size() > 2) {
    fail("there is no use for the argument " + in_quotes(positional[2]) + " beside --inputs");
  }
  refuse_flags({"normalize", "rgb", "bgr", "mean", "std", "mean_order", "resizer", "fit", "resize",
                "crop", "layout", "topk", "dump_input"},
               flag_is_set("inputs") ? "with --inputs, which takes tensors as they are"
                                     : "without a picture");
}

void refuse_run_flags(const std::string& where) {
  refuse_flags({"inputs", "outputs", "normalize", "rgb", "bgr", "mean", "std", "mean_order",
                "resizer", "fit", "resize", "crop", "layout", "topk", "dump_input", "fill_mode",
                "seed", "save_inputs", "plan_memory"},
               where);
  refuse_flags({"threads", "cpus", "cluster", "spin", "sweep", "print_memory", "repeat", "number",
                "warmup", "warmup_seconds", "min_seconds", "max_seconds", "until_ci", "cold_cache",
                "fps", "print_time", "times"},
               where);
  refuse_flags({"profile", "profile_csv", "profile_trace", "profile_html", "profile_json",
                "profile_sort", "profile_top"},
               where);
}

void read_compare_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.size() != 2) {
    fail("--compare takes two files, but " + std::to_string(positional.size()) + " were given",
         "run_model --compare FIRST SECOND compares two reports, or two files of arrays");
  }
  settings.first = positional[0];
  settings.second = positional[1];
  settings.compare = read_compare_settings();
  refuse_run_flags("with --compare, which runs nothing");
  refuse_flags({"inspect", "target", "verify"}, "with --compare, which loads no artifact");
}

void read_inspect_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.empty()) {
    fail("the artifact is missing",
         "run_model --inspect [NAME] ARTIFACTS shows what an artifact is");
  }
  if (positional.size() > 2) {
    fail("there is no use for the argument " + in_quotes(positional[2]) + " beside --inspect");
  }
  if (positional.size() == 1) {
    settings.model.clear();
    settings.artifacts = positional[0];
  }
  refuse_run_flags("with --inspect, which runs nothing");
  refuse_flags({"atol", "rtol", "noise"}, "without --compare");
}

void read_fill_flags(Settings& settings) {
  if (flag_is_set("fill_mode")) settings.fill_mode = parse_fill_mode(FLAGS_fill_mode);
  settings.seed = FLAGS_seed;
  if (settings.fill_mode != FillMode::kRandom) {
    refuse_flags({"seed"}, "without --fill-mode random");
  }
}

// Without a picture there are two arguments.
Action requested_action(std::size_t arguments) {
  const auto is_on = [](const char* name) {
    return gflags::GetCommandLineFlagInfoOrDie(name).current_value == "true";
  };
  if (is_on("help")) return Action::kHelp;
  if (is_on("helpfull")) return Action::kFullHelp;
  if (is_on("version")) return Action::kVersion;
  if (FLAGS_compare) return Action::kCompare;
  if (FLAGS_inspect) return Action::kInspect;
  const bool tensors = flag_is_set("inputs") || (flag_is_set("fill_mode") && arguments <= 2);
  return tensors ? Action::kRunTensors : Action::kRunPicture;
}

}  // namespace

PackageRequest package_request(const Settings& settings) {
  PackageRequest request;
  request.model = settings.model;
  request.artifacts = settings.artifacts;
  request.target = settings.target;
  request.verify = settings.verify;
  return request;
}

Settings read_settings(std::span<const std::string> args) {
  const Arguments arguments = split_arguments(args);
  set_flags(arguments.flags);

  Settings settings;
  settings.action = requested_action(arguments.positional.size());
  settings.inputs = FLAGS_inputs;
  settings.outputs = FLAGS_outputs;
  settings.dump_input = FLAGS_dump_input;
  settings.save_inputs = FLAGS_save_inputs;
  read_fill_flags(settings);
  settings.target = FLAGS_target;
  settings.verify = FLAGS_verify;
  settings.plan_memory = FLAGS_plan_memory;
  settings.json = FLAGS_json;
  settings.topk = FLAGS_topk;
  settings.print_memory = FLAGS_print_memory;
  settings.threading = read_thread_settings();
  settings.measure = read_measure_settings();
  settings.profile = read_profile_settings();
  for (const char* name :
       {"inputs", "outputs", "dump_input", "target", "mean", "std", "save_inputs", "times"}) {
    if (flag_is_set(name) && gflags::GetCommandLineFlagInfoOrDie(name).current_value.empty()) {
      fail("--" + std::string(name) + " is given an empty value");
    }
  }
  if (settings.topk < 1)
    fail("--topk is " + std::to_string(settings.topk) + ", expected 1 or more");

  const std::vector<std::string>& positional = arguments.positional;
  if (positional.size() > 0) settings.model = positional[0];
  if (positional.size() > 1) settings.artifacts = positional[1];
  switch (settings.action) {
    case Action::kRunPicture:
      read_picture_arguments(positional, settings);
      refuse_flags({"atol", "rtol", "noise"}, "without --compare");
      settings.preprocessing = read_preprocessing_flags();
      break;
    case Action::kRunTensors:
      read_tensor_arguments(positional);
      refuse_flags({"atol", "rtol", "noise"}, "without --compare");
      break;
    case Action::kInspect:
      read_inspect_arguments(positional, settings);
      break;
    case Action::kCompare:
      read_compare_arguments(positional, settings);
      break;
    case Action::kHelp:
    case Action::kFullHelp:
    case Action::kVersion:
      break;
  }
  return settings;
}

}  // namespace run_model
