// This runtime, as the benches run it:
//   trial_run_model RUNS WARM_UP_RUNS ARTIFACT_FOLDER INPUT_NAME       one trial (trial.h)
//   trial_run_model serve INPUT OUTPUT ARTIFACT_FOLDER INPUT_NAME      asked over a pipe (serve.h)
#include <optional>

#include <run_model/graph_executor.h>
#include "bench/serve.h"
#include "bench/trial.h"

namespace run_model::bench {
namespace {

class RunModelSubject {
 public:
  explicit RunModelSubject(const std::vector<std::string>& arguments)
      : folder_(arguments.at(0)), input_(arguments.at(1)) {}

  void load() {
    executor_.emplace(
        ModelFiles{folder_ / "model.so", folder_ / "model.json", folder_ / "model.params"});
  }

  std::span<float> input() {
    return executor_->input(executor_->input_index(input_)).elements<float>();
  }

  void run() { executor_->run(); }

  std::span<const float> output() {
    output_ = executor_->output(0);
    return output_.elements<float>();
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

 private:
  std::filesystem::path folder_;
  std::string input_;
  std::optional<GraphExecutor> executor_;
  Tensor output_;
};

}  // namespace
}  // namespace run_model::bench

int main(int argc, char** argv) {
  using namespace run_model::bench;
  return is_serve(argc, argv) ? serve_main<RunModelSubject>(argc, argv)
                              : trial_main<RunModelSubject>(argc, argv);
}
