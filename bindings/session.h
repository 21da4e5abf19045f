// A loaded model with what was last set and run: what the C interface is made of.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/image.h>
#include <run_model/package.h>
#include <run_model/preprocessing.h>
#include <run_model/task.h>
#include <run_model/task_result.h>

namespace run_model {

struct SessionOptions {
  PackageRequest request;
  TaskRequest tasks;
  std::vector<DLDevice> devices;  // one; none: what the artifact was compiled for
  int threads = 0;                // 0: as many as the machine has cores
};

// Not safe to use from two threads at once.
class Session {
 public:
  // Throws as open_package, choose_tasks, ThreadPool and GraphExecutor do, and Error(kMismatch)
  // where the metadata is another model's.
  explicit Session(const SessionOptions& options);

  GraphExecutor& executor() { return executor_; }
  const GraphExecutor& executor() const { return executor_; }

  // As metadata.json has it, else as the executor does.
  std::string output_name(std::size_t index) const;

  // Pictures that are set from now on are seen there only; nothing: as a whole.
  void set_region(const std::optional<PictureRegion>& region) { region_ = region; }

  // Preprocesses a picture into an input, which `width` and `height` are the sides of where the
  // model leaves them open, else 0. Throws Error(kMismatch) where metadata.json does not say how,
  // or the sides are others, and as preprocess() does.
  void set_picture(std::size_t index, const Image& image, int width, int height);

  // A list with an object for each task, as the program run_model has it. Without tasks it is a
  // classification by the first output. Throws Error(kUsage) where no picture was set before the
  // last run, and as postprocess() does.
  std::string results(std::size_t classes) const;

  // Where the detections of this one's results lead `other`: a list as the program has it. Throws
  // as results() and region_of() do, and Error(kUsage) where no task is a detection.
  std::string regions_for(const Session& other) const;

  void run();

 private:
  std::vector<TaskResult> found(std::size_t classes) const;

  Package package_;
  std::vector<Task> tasks_;  // a classification by the first output where there is no other
  GraphExecutor executor_;
  std::optional<PictureRegion> region_;
  std::optional<PreprocessReport> picture_;  // the one that was set last
  bool has_run_ = false;                     // since it was set
};

}  // namespace run_model
