// Names what is in a picture: classify MODEL ARTIFACTS PICTURE
#include <run_model/class_scores.h>
#include <run_model/decode.h>
#include <run_model/error.h>
#include <run_model/graph_executor.h>
#include <run_model/package.h>
#include <run_model/preprocessing.h>
#include <run_model/top_k.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 4)
    throw run_model::Error(run_model::ErrorKind::kUsage, "classify MODEL ARTIFACTS PICTURE");
  const run_model::Package package =
      run_model::open_package({.model = argv[1], .artifacts = argv[2]});
  run_model::GraphExecutor executor(package.files);
  const run_model::TensorInfo& input = executor.inputs().at(0);
  const run_model::Picture picture = run_model::load_picture(argv[3]);
  executor.set_input(
      0, run_model::preprocess(picture.image, package.metadata.value().preprocessing.value(),
                               input.shape, input.dtype, run_model::Layout::kNchw));
  executor.run();
  for (const auto& [index, probability] :
       run_model::top_k(run_model::class_scores(executor.output(0)), 5)) {
    std::printf("%zu %f\n", index, probability);
  }
} catch (const run_model::Error& error) {
  std::fprintf(stderr, "classify: %s\n", error.what());
  return 1 + static_cast<int>(error.kind());  // as run_model's own programs
} catch (const std::exception& error) {
  std::fprintf(stderr, "classify: %s\n", error.what());
  return 1;
}
