#include "run_model/run_model/settings.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include <run_model/error.h>
#include <run_model/geometry.h>
#include <run_model/preprocessing.h>
#include <run_model/resize.h>
#include "base/file.h"
#include "base/text.h"
#include "run_model/run_model/flags.h"
#include "run_model/shared/arguments.h"
#include "runtime/devices/device_name.h"

namespace run_model {
namespace {

[[maybe_unused]] const bool kRegistered = register_flags(kRunManual);

constexpr char kUsualLabels[] = "imagenet.txt";

std::optional<int> positive_flag(const char* name, int value) {
  if (!flag_is_set(name)) return std::nullopt;
  if (value < 1 || value > kMaxImageSide) {
    refuse(flag_spelling(name) + " is " + std::to_string(value) + ", expected 1 to " +
           std::to_string(kMaxImageSide));
  }
  return value;
}

// WxH.
std::array<int, 2> parse_sides(const std::string& text) {
  std::array<int, 2> size{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < size.size(); ++i) {
    const auto read = std::from_chars(at, end, size[i]);
    const bool last = i + 1 == size.size();
    if (read.ec != std::errc() || size[i] < 1 || size[i] > kMaxImageSide ||
        (last ? read.ptr != end : read.ptr == end || *read.ptr != 'x')) {
      refuse("--size is " + in_quotes(text) + ", expected width and height, 1 to " +
                 std::to_string(kMaxImageSide),
             "as in --size 640x480");
    }
    at = last ? end : read.ptr + 1;
  }
  return size;
}

PreprocessingFlags read_preprocessing_flags() {
  PreprocessingFlags flags;
  if (flag_is_set("normalize")) flags.normalize = run_flags.normalize;
  if (run_flags.rgb && run_flags.bgr)
    refuse("--rgb and --bgr contradict each other", "give one of them");
  if (run_flags.rgb) flags.color_order = "RGB";
  if (run_flags.bgr) flags.color_order = "BGR";
  if (flag_is_set("mean")) flags.mean = parse_triple("mean", run_flags.mean);
  if (flag_is_set("std")) flags.std = parse_triple("std", run_flags.std);
  flags.mean_in_rgb_order = run_flags.mean_order == "rgb";
  flags.resizer = run_flags.resizer;
  if (!flags.resizer.empty()) parse_resizer(flags.resizer);
  flags.jpeg_decoder = parse_jpeg_decoder(run_flags.jpeg_decoder);
  flags.fit = run_flags.fit;
  if (!flags.fit.empty()) parse_fit(flags.fit);
  flags.resize = positive_flag("resize", run_flags.resize);
  flags.crop = positive_flag("crop", run_flags.crop);
  if (flag_is_set("size")) flags.size = parse_sides(run_flags.size);
  flags.layout = run_flags.layout;
  if (!flags.layout.empty()) parse_layout(flags.layout);
  return flags;
}

// Flags that only some ways of running read: given with another one, they would do nothing.
using FlagNames = std::initializer_list<const char*>;
constexpr FlagNames kOfTasks = {"task",          "score_threshold", "draw",    "save_mask",
                                "save_map",      "map_format",      "coco",    "compare_with",
                                "given_outputs", "region",          "detector"};
constexpr FlagNames kOfPictures = {"normalize",  "rgb",     "bgr",          "mean", "std",
                                   "mean_order", "resizer", "jpeg_decoder", "fit",  "resize",
                                   "crop",       "size",    "layout",       "topk", "dump_input"};
constexpr FlagNames kOfTiming = {"repeat",         "number",      "instances",   "warmup",
                                 "warmup_seconds", "min_seconds", "max_seconds", "until_ci",
                                 "cold_cache",     "print_time",  "times"};
constexpr FlagNames kOfProfiles = {"profile",      "profile_csv",  "profile_trace", "profile_html",
                                   "profile_json", "profile_sort", "profile_top"};
constexpr FlagNames kOfComparisons = {"atol", "rtol", "noise"};

void refuse_flags(FlagNames names, const std::string& where) {
  for (const char* name : names) {
    if (!flag_is_set(name)) continue;
    refuse(flag_spelling(name) + " has no meaning " + where);
  }
}

void refuse_groups(std::initializer_list<FlagNames> groups, const std::string& where) {
  for (const FlagNames& names : groups) refuse_flags(names, where);
}

// `given` itself; but where it is a plain file name that is not there, and this program's own
// installation (<prefix>/bin/run_model) has a file of that name in <prefix>/share/run_model/labels,
// that one.
std::filesystem::path find_labels(const std::filesystem::path& given) {
  if (given.empty() || given.has_parent_path() || is_there(given)) return given;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed =
      program.parent_path().parent_path() / "share" / "run_model" / "labels" / given;
  return !error && is_there(installed) ? installed : given;
}

// X,Y,W,H or X,Y,W,H,ANGLE. Whether it fits the picture is seen when there is one.
PictureRegion parse_region(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  for (std::string part; std::getline(stream, part, ',');) {
    std::size_t used = 0;
    try {
      numbers.push_back(std::stod(part, &used));
    } catch (const std::exception&) {
      used = std::string::npos;
    }
    if (used != part.size()) refuse("--region has " + in_quotes(part) + ", expected a number");
  }
  if (numbers.size() != 4 && numbers.size() != 5) {
    refuse("--region is " + in_quotes(text) + ", expected X,Y,W,H or X,Y,W,H,ANGLE");
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers.size() == 5 ? numbers[4] : 0.0};
}

void refuse_empty(const char* flag) {
  if (!flag_is_set(flag) || !flag_value(flag).empty()) return;
  refuse(flag_spelling(flag) + " is given an empty value");
}

void read_task_flags(Settings& settings) {
  for (const char* name : {"task", "draw", "save_mask", "save_map", "coco", "compare_with",
                           "given_outputs", "detector"}) {
    refuse_empty(name);
    settings.needs_task = settings.needs_task || flag_is_set(name);
  }
  settings.task = run_flags.task;
  settings.draw = run_flags.draw;
  settings.save_mask = run_flags.save_mask;
  settings.save_map = run_flags.save_map;
  settings.coco = run_flags.coco;
  settings.compare_with = run_flags.compare_with;
  settings.given_outputs = run_flags.given_outputs;
  settings.detector = run_flags.detector;
  if (flag_is_set("region")) settings.region = parse_region(run_flags.region);
  if (flag_is_set("region") && flag_is_set("detector")) {
    refuse("--region and --detector contradict each other: both say what the network is to see");
  }
  if (flag_is_set("detector")) {
    refuse_flags({"given_outputs", "compare_with"}, "with --detector");
  }
  if (flag_is_set("score_threshold")) {
    settings.needs_task = true;
    settings.score_threshold = run_flags.score_threshold;
    if (!(*settings.score_threshold >= 0 && *settings.score_threshold <= 1)) {
      refuse("--score-threshold is not from 0 to 1");
    }
  }
}

// Of one picture the file's ending says what it becomes.
void read_map_format(Settings& settings, bool many) {
  const std::string& format = run_flags.map_format;
  if (many) {
    if (flag_is_set("map_format") && !flag_is_set("save_map")) {
      refuse("--map-format has a meaning with --save-map only");
    }
    if (!format.empty() && format != "npy" && format != "png") {
      refuse("--map-format is " + in_quotes(format) + ", expected npy or png");
    }
    settings.map_png = format == "png";
    return;
  }
  refuse_flags({"map_format"}, "with one picture, where the ending of --save-map's file says it");
  if (settings.save_map.empty()) return;
  settings.map_png = settings.save_map.extension() == ".png";
  if (!settings.map_png && settings.save_map.extension() != ".npy") {
    refuse("--save-map is " + in_quotes(settings.save_map.string()) +
           ", expected a name that ends in .npy or .png");
  }
}

// One report for each of many pictures has no room for what is measured of one.
void read_many_pictures(Settings& settings) {
  settings.action = Action::kRunPictures;
  refuse_groups({kOfTiming,
                 {"sweep", "print_memory"},
                 kOfProfiles,
                 {"dump_input", "outputs", "save_inputs", "given_outputs"}},
                "with many pictures");
}

void read_picture_arguments(const std::vector<std::string>& positional, Settings& settings) {
  settings.labels = find_labels(positional.size() > 3 ? positional[3] : kUsualLabels);
  settings.labels_given = positional.size() > 3;
  settings.labels_found = settings.labels_given || is_there(settings.labels);
  // Whether labels are needed is seen when the artifact's tasks are known.
  static constexpr std::string_view kArguments[] = {"NAME", "ARTIFACTS", "IMAGE"};
  if (positional.size() < std::size(kArguments)) {
    refuse("the argument " + std::string(kArguments[positional.size()]) + " is missing",
           "run_model NAME ARTIFACTS IMAGE LABELS [INPUT] classifies a picture, and --help shows "
           "more");
  }
  if (positional.size() > 5) refuse("there is no use for the argument " + in_quotes(positional[5]));
  settings.image = positional[2];
  if (positional.size() == 5) settings.input_name = positional[4];
  read_task_flags(settings);
  const bool many = settings.image == "-" || is_folder(settings.image);
  read_map_format(settings, many);
  if (many) {
    read_many_pictures(settings);
  } else if (!settings.given_outputs.empty()) {
    refuse_groups({kOfTiming, kOfProfiles, {"sweep", "fps", "outputs"}},
                  "with --given-outputs, which runs nothing");
  }
}

// A library, an archive or a folder, which a model's name alone is not.
bool is_artifact(const std::string& argument) {
  return argument.find_first_of("/.") != argument.npos || is_there(argument);
}

void read_tensor_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.size() == 1 && is_artifact(positional[0])) {
    settings.model.clear();
    settings.artifacts = positional[0];
  } else if (positional.size() < 2) {
    refuse("NAME or ARTIFACTS is missing",
           "run_model NAME ARTIFACTS --inputs IN.npz --outputs OUT.npz runs a model on tensors");
  }
  if (positional.size() > 2) {
    refuse("there is no use for the argument " + in_quotes(positional[2]) + " beside --inputs");
  }
  refuse_flags(kOfTasks, "without a picture");
  refuse_flags(kOfPictures, flag_is_set("inputs") ? "with --inputs, which takes tensors as they are"
                                                  : "without a picture");
}

// But those that --calls has too.
void refuse_model_flags(const std::string& where) {
  refuse_groups({kOfTasks,
                 kOfPictures,
                 {"fill_mode", "seed", "save_inputs", "plan_memory", "device", "sweep",
                  "print_memory", "fps"},
                 kOfTiming,
                 kOfProfiles},
                where);
}

void refuse_run_flags(const std::string& where) {
  refuse_flags({"inputs", "outputs", "calls", "threads", "cpus", "cluster", "spin"}, where);
  refuse_model_flags(where);
}

void read_calls_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.size() == 1 && is_artifact(positional[0])) {
    settings.model.clear();
    settings.artifacts = positional[0];
  } else if (positional.size() != 2) {
    refuse(
        "--calls takes NAME and ARTIFACTS, or a library",
        "run_model model.so --calls CALLS.json --inputs IN.npz --outputs OUT.npz calls functions "
        "one after the other");
  }
  refuse_model_flags("with --calls");
  refuse_flags({"inspect", "function"}, "with --calls");
  refuse_flags(kOfComparisons, "with --calls");
}

void read_compare_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.size() != 2) {
    refuse("--compare takes two files, but " + std::to_string(positional.size()) + " were given",
           "run_model --compare FIRST SECOND compares two reports, or two files of arrays");
  }
  settings.first = positional[0];
  settings.second = positional[1];
  settings.compare = read_compare_settings();
  refuse_run_flags("with --compare, which runs nothing");
  refuse_flags({"inspect", "target", "verify", "function"},
               "with --compare, which loads no artifact");
}

void read_inspect_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (positional.empty()) {
    refuse("the artifact is missing",
           "run_model --inspect [NAME] ARTIFACTS shows what an artifact is");
  }
  if (positional.size() > 2) {
    refuse("there is no use for the argument " + in_quotes(positional[2]) + " beside --inspect");
  }
  if (positional.size() == 1) {
    settings.model.clear();
    settings.artifacts = positional[0];
  }
  refuse_run_flags("with --inspect, which runs nothing");
  refuse_flags(kOfComparisons, "without --compare");
}

void read_list_devices_arguments(const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    refuse("there is no use for the argument " + in_quotes(positional[0]) +
           " beside --list-devices");
  }
  refuse_run_flags("with --list-devices, which runs nothing");
  const std::string where = "with --list-devices, which loads no artifact";
  refuse_flags({"inspect", "compare", "target", "verify", "function"}, where);
  refuse_flags(kOfComparisons, where);
}

void read_arguments(const std::vector<std::string>& positional, Settings& settings) {
  if (!positional.empty()) settings.model = positional[0];
  while (settings.model.ends_with('/')) settings.model.pop_back();  // as shells complete folders
  if (positional.size() > 1) settings.artifacts = positional[1];
  switch (settings.action) {
    case Action::kRunPicture:
    case Action::kRunPictures:
      read_picture_arguments(positional, settings);
      refuse_flags(kOfComparisons, "without --compare");
      settings.preprocessing = read_preprocessing_flags();
      return;
    case Action::kRunTensors:
      read_tensor_arguments(positional, settings);
      refuse_flags(kOfComparisons, "without --compare");
      return;
    case Action::kRunCalls:
      return read_calls_arguments(positional, settings);
    case Action::kInspect:
      return read_inspect_arguments(positional, settings);
    case Action::kCompare:
      return read_compare_arguments(positional, settings);
    case Action::kListDevices:
      return read_list_devices_arguments(positional);
  }
}

void read_fill_flags(Settings& settings) {
  if (flag_is_set("fill_mode")) settings.fill_mode = parse_fill_mode(run_flags.fill_mode);
  // What nothing at all is said of is measured on random values.
  if (settings.action == Action::kRunTensors && settings.inputs.empty() && !settings.fill_mode) {
    settings.fill_mode = FillMode::kRandom;
  }
  settings.seed = run_flags.seed;
  if (settings.fill_mode != FillMode::kRandom) {
    refuse_flags({"seed"}, "without --fill-mode random");
  }
}

// Without a picture there are two arguments, or one; flags that ask for a measurement need no more.
Action requested_action(std::size_t arguments, const Settings& settings) {
  if (run_flags.list_devices) return Action::kListDevices;
  if (run_flags.compare) return Action::kCompare;
  if (run_flags.inspect) return Action::kInspect;
  if (flag_is_set("calls")) return Action::kRunCalls;
  const bool measures = arguments > 0 && (settings.measure.wanted || settings.profile.wanted ||
                                          settings.threading.sweep || settings.print_memory);
  const bool tensors =
      flag_is_set("inputs") || ((flag_is_set("fill_mode") || measures) && arguments <= 2);
  return tensors ? Action::kRunTensors : Action::kRunPicture;
}

}  // namespace

PackageRequest package_request(const Settings& settings) {
  PackageRequest request;
  request.model = settings.model;
  request.artifacts = settings.artifacts;
  request.target = settings.target;
  request.verify = settings.verify;
  for (const DLDevice& device : settings.devices) {
    request.device = device_type_name(device.device_type).value_or("");
  }
  return request;
}

LoadOptions load_options(const Settings& settings) {
  return {settings.print_memory, settings.plan_memory, settings.function, settings.devices};
}

Settings read_settings(std::span<const std::string> args) {
  const Arguments arguments = split_arguments(kRunManual, args);
  set_flags(kRunManual, arguments.flags);

  Settings settings;
  settings.help = help_request();
  if (settings.help != HelpRequest::kNone) return settings;
  settings.inputs = run_flags.inputs;
  settings.outputs = run_flags.outputs;
  settings.calls = run_flags.calls;
  settings.dump_input = run_flags.dump_input;
  settings.save_inputs = run_flags.save_inputs;
  settings.target = run_flags.target;
  if (flag_is_set("device")) settings.devices = {parse_device_name(run_flags.device)};
  settings.verify = run_flags.verify;
  settings.plan_memory = run_flags.plan_memory;
  settings.function = run_flags.function;
  settings.json = run_flags.json;
  settings.topk = run_flags.topk;
  settings.print_memory = run_flags.print_memory;
  settings.threading = read_thread_settings();
  settings.measure = read_measure_settings();
  settings.profile = read_profile_settings();
  settings.action = requested_action(arguments.positional.size(), settings);
  read_fill_flags(settings);
  for (const char* name :
       {"inputs", "outputs", "dump_input", "target", "mean", "std", "save_inputs", "times",
        "function", "calls", "profile_csv", "profile_trace", "profile_html", "profile_json"}) {
    refuse_empty(name);
  }
  if (settings.topk < 1)
    refuse("--topk is " + std::to_string(settings.topk) + ", expected 1 or more");
  read_arguments(arguments.positional, settings);
  return settings;
}

}  // namespace run_model
