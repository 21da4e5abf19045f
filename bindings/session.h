// A loaded model with what was last set and run: what the C interface is made of.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/image.h>
#include <run_model/package.h>
#include <run_model/preprocessing.h>

namespace run_model {

// Not safe to use from two threads at once.
class Session {
 public:
  // `labels`: a file, or empty. Throws as open_package, read_labels, ThreadPool and GraphExecutor
  // do, and Error(kMismatch) where the metadata is another model's.
  Session(const PackageRequest& request, const std::string& labels, int threads);

  GraphExecutor& executor() { return executor_; }
  const GraphExecutor& executor() const { return executor_; }

  // As metadata.json has it, else as the executor does.
  std::string output_name(std::size_t index) const;

  // Preprocesses a picture into an input, which `width` and `height` are the sides of where the
  // model leaves them open, else 0. Throws Error(kMismatch) where metadata.json does not say how,
  // or the sides are others.
  void set_picture(std::size_t index, const Image& image, int width, int height);

  // A list with an object for each task, as the program run_model has it. Without tasks it is a
  // classification by the first output. Throws Error(kUsage) where no picture was set before the
  // last run, and as postprocess() does.
  std::string results(std::size_t classes) const;

  void run();

 private:
  Package package_;
  std::vector<std::string> labels_;
  GraphExecutor executor_;
  std::optional<PreprocessReport> picture_;  // the one that was set last
  bool has_run_ = false;                     // since it was set
};

}  // namespace run_model
