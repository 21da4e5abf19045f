// One loaded model, run on picture after picture.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/network_outputs.h>
#include <run_model/npz.h>
#include "run_model/run_model/preprocessing_choice.h"
#include "run_model/run_model/report/report.h"
#include "run_model/run_model/settings.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {

class PictureRunner {
 public:
  // Loads the artifact, and decides how pictures are preprocessed and what the outputs mean. Throws
  // Error of any code but kInternal and kImage.
  explicit PictureRunner(const Settings& settings);

  const std::vector<Task>& tasks() const { return tasks_; }

  // Decodes and preprocesses the picture, runs the model, and postprocesses. With `measure` the run
  // is measured as the settings ask, and files of --dump-input and --outputs are written.
  // `decoded`, where given, is left with the picture. Where the settings name a region or a
  // detector, the model is run on each region.
  PictureReport run(const std::filesystem::path& path, bool measure, Picture* decoded);

 private:
  void choose_tasks();
  void load_detector();
  std::vector<NetworkOutput> outputs();
  void see(const Image& image, const PictureRegion* region, bool measure, PictureReport& report);
  std::vector<SeenRegion> find_regions(const Image& image);
  void interpret(PictureReport& report);

  const Settings& settings_;
  LoadedPackage loaded_;
  std::vector<std::string> labels_;  // of a classifier without tasks
  std::vector<Task> tasks_;
  std::size_t input_ = 0, output_ = 0;
  PreprocessingChoice choice_;
  std::vector<NamedTensor> given_;            // --given-outputs
  std::optional<EmbeddingResult> reference_;  // --compare-with
  Settings detector_settings_;
  std::unique_ptr<PictureRunner> detector_;  // --detector
};

}  // namespace run_model
