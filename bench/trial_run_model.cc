// One trial of this runtime: trial_run_model RUNS WARM_UP_RUNS ARTIFACT_FOLDER INPUT_NAME
#include <optional>

#include "bench/trial.h"
#include "runtime/graph_executor.h"

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

  void run_first(std::uint64_t& out) {
    fill_input(executor_->input(executor_->input_index(input_)).elements<float>());
    executor_->run();
    out = fingerprint(executor_->output(0).elements<float>());
  }

  void run() { executor_->run(); }

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
};

}  // namespace
}  // namespace run_model::bench

int main(int argc, char** argv) {
  return run_model::bench::trial_main<run_model::bench::RunModelSubject>(argc, argv);
}
