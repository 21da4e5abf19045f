// What a run has to tell, and how that becomes text or JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/graph_executor.h>
#include <run_model/package.h>
#include <run_model/png_file.h>
#include <run_model/postprocess.h>
#include <run_model/preprocessing.h>
#include <run_model/task_result.h>
#include "run_model/run_model/machine/context.h"
#include "run_model/run_model/machine/sweep.h"
#include "run_model/run_model/measure/timing.h"
#include "run_model/run_model/profile/profile.h"
#include "run_model/run_model/setting_groups.h"
#include "run_model/run_model/tensor_values.h"
#include "run_model/shared/memory_stages.h"
#include "run_model/shared/thread_plan.h"

namespace run_model {

// Milliseconds.
struct Timing {
  double load = 0.0;         // finding, checking and loading the artifact
  double decode = 0.0;       // from the picture's file to its pixels
  double preprocess = 0.0;   // from the picture's file to the network's input
  double run = 0.0;          // the first inference
  double postprocess = 0.0;  // from its outputs to boxes, masks …; 0 without tasks
};

struct RankedClass {
  std::size_t index = 0;
  std::string label;
  double probability = 0.0;
};

struct TensorReport {
  TensorInfo info;
  ValueRange range;
};

// Both kinds of run.
struct RunReport {
  Package package;
  int threads = 0;
  std::vector<std::string> devices;  // GPUs that it computes on; empty for the CPU
  ThreadPlan thread_plan;
  MemoryStages memory;  // disabled unless --print-memory asks for it
  Timing timing;
  std::optional<TimingMeasurement> measurement;  // of repeated runs, where asked for
  // Of repeated runs: tell whether two reports are of the same library and inputs.
  std::string library_fingerprint, inputs_fingerprint;
  std::optional<Profile> profile;         // where asked for
  ProfileSettings profile_settings;       // how to show it
  std::optional<ThreadSweep> sweep;       // where asked for
  std::optional<MachineContext> machine;  // where a report shows it
};

// The file of a map.
struct SavedMap {
  std::filesystem::path path;
  std::optional<MapCoding> coding;  // of a PNG; nothing: it holds the numbers themselves
};

struct PictureReport {
  RunReport run;
  std::filesystem::path image;
  PictureFormat format = PictureFormat::kPng;
  int image_channels = 0;
  int image_orientation = 1;
  PreprocessReport sides;
  Preprocessing preprocessing;
  Layout layout = Layout::kNchw;
  TensorReport input;
  // Of a classifier without tasks.
  TensorReport output;
  bool output_is_distribution = false;
  std::vector<RankedClass> top;  // best first; empty: there are tasks
  // Of a model with tasks, a result for each, region after region.
  bool described = false;
  std::vector<TensorInfo> outputs;
  std::vector<Task> tasks;
  std::vector<TaskResult> results;
  bool in_regions = false;  // --region or --detector; the latter may find none
  std::vector<SeenRegion> regions;
  std::optional<double> cosine;  // of --compare-with
  std::filesystem::path drawn;   // empty: nothing was
  std::optional<SavedMap> map;   // nothing: none was
};

struct TensorsReport {
  RunReport run;
  std::vector<TensorInfo> inputs;
  std::vector<TensorReport> outputs;
  std::filesystem::path outputs_file;  // empty: not written
};

// For people: the lines that TVM-Prep's wrapper printed, and the times. A network that takes blue
// first has its mean and deviation named by channel: "Mean: B=104 G=117 R=123".
std::string picture_report_text(const PictureReport& report);
std::string tensors_report_text(const TensorsReport& report);

// For programs: one JSON object each, schema version 1, documented in run_model/README.md.
std::string picture_report_json(const PictureReport& report);
std::string tensors_report_json(const TensorsReport& report);

}  // namespace run_model
