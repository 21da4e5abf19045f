// What the command line asks for.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/package.h>
#include "run_model/run_model/setting_groups.h"
#include "run_model/run_model/tensor_values.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {

enum class Action {
  kRunPicture,
  kRunPictures,
  kRunTensors,
  kRunCalls,
  kInspect,
  kCompare,
  kListDevices,
};

// The preprocessing flags as given; what is not given comes from the artifact's metadata or from
// defaults, see preprocessing_choice.h.
struct PreprocessingFlags {
  std::optional<bool> normalize;  // --normalize or --no-normalize
  std::string color_order;        // "RGB", "BGR" or empty
  std::optional<std::array<double, 3>> mean;
  std::optional<std::array<double, 3>> std;
  bool mean_in_rgb_order = false;  // --mean-order=rgb; otherwise mean and std are in network order
  std::string resizer;
  std::string fit;
  std::optional<int> resize;
  std::optional<int> crop;
  std::optional<std::array<int, 2>> size;  // --size: width and height
  std::string layout;                      // as layout_name() has it, or empty
  JpegDecoder jpeg_decoder = JpegDecoder::kLibjpegTurbo;
};

struct Settings {
  HelpRequest help = HelpRequest::kNone;  // anything else: nothing below has been read
  Action action = Action::kRunPicture;
  std::string model;
  std::filesystem::path artifacts;
  std::filesystem::path image;
  std::filesystem::path labels;
  bool labels_given = false, labels_found = false;  // as an argument; or there by the usual name
  std::filesystem::path task;                       // --task
  bool needs_task = false;                          // a flag has a meaning with one only
  std::optional<double> score_threshold;
  std::filesystem::path draw, save_mask, save_map, coco;
  bool map_png = false;  // what save_map is; false: .npy
  std::filesystem::path compare_with, given_outputs;
  std::optional<PictureRegion> region;  // --region
  std::string detector;                 // --detector
  std::string input_name;               // empty: the model's only input
  PreprocessingFlags preprocessing;
  std::filesystem::path inputs;       // --inputs
  std::filesystem::path outputs;      // --outputs, --save-outputs
  std::filesystem::path calls;        // --calls
  std::filesystem::path dump_input;   // --dump-input
  std::optional<FillMode> fill_mode;  // of inputs that nothing else sets
  std::uint64_t seed = 0;             // of FillMode::kRandom
  std::filesystem::path save_inputs;  // --save-inputs
  std::string target;
  std::vector<DLDevice> devices;  // --device: one, or none
  bool verify = true;
  bool plan_memory = true;
  std::string function;  // --function
  bool json = false;
  int topk = 5;
  bool print_memory = false;
  ThreadSettings threading;
  std::filesystem::path first, second;  // of --compare
  CompareSettings compare;
  MeasureSettings measure;
  ProfileSettings profile;
};

// The artifact that the settings name.
PackageRequest package_request(const Settings& settings);

// How it is to be loaded.
LoadOptions load_options(const Settings& settings);

// Sets gflags' flags from `args` (without the program's name) and checks that they make sense
// together. Throws Error(kUsage).
Settings read_settings(std::span<const std::string> args);

}  // namespace run_model
