// This runtime, as the benches run it:
//   trial_run_model RUNS WARM_UP_RUNS ARTIFACT_FOLDER INPUT_NAME...    one trial (trial.h)
//   trial_run_model serve INPUT OUTPUT ARTIFACT_FOLDER INPUT_NAME...   asked over a pipe (serve.h)
#include <algorithm>
#include <filesystem>
#include <optional>

#include <run_model/graph_executor.h>
#include "bench/serve.h"
#include "bench/trial.h"

namespace run_model::bench {
namespace {

class RunModelSubject {
 public:
  explicit RunModelSubject(const std::vector<std::string>& arguments)
      : folder_(arguments.at(0)), inputs_(arguments.begin() + 1, arguments.end()) {}

  void load() {
    ModelFiles files{folder_ / "model.so", folder_ / "model.json", folder_ / "model.params"};
    if (!exists(files.graph)) {  // a Relax executable
      files.graph.clear();
      files.params.clear();
    }
    executor_.emplace(files);
  }

  std::vector<std::span<std::byte>> inputs() {
    std::vector<std::span<std::byte>> found;
    for (const std::string& name : inputs_) {
      Tensor input = executor_->input(executor_->input_index(name));
      found.emplace_back(static_cast<std::byte*>(input.data()), input.nbytes());
    }
    return found;
  }

  void run() { executor_->run(); }

  std::vector<float> output() {
    Tensor output = executor_->output(0);
    if (output.dtype().code == kDLFloat && output.dtype().bits == 32) {
      std::span<const float> values = output.elements<float>();
      return {values.begin(), values.end()};
    }
    std::vector<double> values = to_doubles(output);
    return {values.begin(), values.end()};
  }

  std::string extra_json() const {
    MemoryAccount memory = executor_->memory();
    std::ostringstream text;
    text << ", \"params_mapped\": " << memory.params_mapped
         << ", \"params_copied\": " << memory.params_copied
         << ", \"activations\": " << memory.activations
         << ", \"threads\": " << ThreadPool::shared()->threads();
    return text.str();
  }

 protected:
  // Of the input that is named as this one.
  bool is_float32(std::size_t number) {
    const DLDataType dtype = executor_->input(executor_->input_index(inputs_[number])).dtype();
    return dtype.code == kDLFloat && dtype.bits == 32;
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> inputs_;
  std::optional<GraphExecutor> executor_;
};

// Numbers of tokens and the like, for which a trial has no values, are 0.
class TrialSubject : public RunModelSubject {
 public:
  using RunModelSubject::RunModelSubject;

  std::vector<std::span<std::byte>> inputs() {
    std::vector<std::span<std::byte>> floats;
    const std::vector<std::span<std::byte>> all = RunModelSubject::inputs();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_float32(i)) {
        floats.push_back(all[i]);
      } else {
        std::fill(all[i].begin(), all[i].end(), std::byte{0});
      }
    }
    return floats;
  }
};

}  // namespace
}  // namespace run_model::bench

int main(int argc, char** argv) {
  using namespace run_model::bench;
  return is_serve(argc, argv) ? serve_main<RunModelSubject>(argc, argv)
                              : trial_main<TrialSubject>(argc, argv);
}
