// Says what is on a football field and draws it: see_field MODEL ARTIFACTS PICTURE OUT.png
#include <run_model/decode.h>
#include <run_model/draw.h>
#include <run_model/error.h>
#include <run_model/graph_executor.h>
#include <run_model/network_outputs.h>
#include <run_model/package.h>
#include <run_model/png_file.h>
#include <run_model/postprocess.h>
#include <run_model/preprocessing.h>

#include <cstdio>
#include <exception>
#include <variant>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 5)
    throw run_model::Error(run_model::ErrorKind::kUsage,
                           "see_field MODEL ARTIFACTS PICTURE OUT.png");
  run_model::PackageRequest request;
  request.model = argv[1];
  request.artifacts = argv[2];
  const run_model::Package package = run_model::open_package(request);
  const run_model::Metadata& metadata = package.metadata.value();
  run_model::GraphExecutor executor(package.files);
  const run_model::TensorInfo& input = executor.inputs().at(0);

  // For a camera, what follows is done for each of its pictures.
  run_model::Picture picture = run_model::load_picture(argv[3]);
  run_model::PreprocessReport sides;
  executor.set_input(
      0, run_model::preprocess(picture.image, metadata.preprocessing.value(), input.shape,
                               input.dtype, run_model::Layout::kNchw, &sides));
  executor.run();
  const auto outputs = run_model::network_outputs(executor, &metadata);
  std::vector<run_model::TaskResult> results;
  for (const run_model::Task& task : metadata.tasks) {
    results.push_back(run_model::postprocess(task, outputs, sides));
    if (const auto* things = std::get_if<run_model::DetectionResult>(&results.back())) {
      for (const run_model::Detection& thing : things->detections) {
        std::printf("%s %.3f at %.0f,%.0f\n", thing.label.c_str(), thing.score,
                    (thing.box.left + thing.box.right) / 2, thing.box.bottom);
      }
    }
  }
  run_model::draw_results(picture.image, metadata.tasks, results);
  run_model::write_png(argv[4], picture.image);
} catch (const run_model::Error& error) {
  std::fprintf(stderr, "see_field: %s\n", error.what());
  return 1 + static_cast<int>(error.kind());  // as run_model's own programs
} catch (const std::exception& error) {
  std::fprintf(stderr, "see_field: %s\n", error.what());
  return 1;
}
