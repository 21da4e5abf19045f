#include "run_model/check_zoo/judge.h"

#include <span>

#include <run_model/class_scores.h>
#include <run_model/decode.h>
#include <run_model/error.h>
#include <run_model/network_outputs.h>
#include <run_model/postprocess.h>
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "run_model/check_zoo/result_comparison.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

std::string short_hash(const std::string& sha256) { return sha256.substr(0, 12) + "…"; }

Quantization first_output_quantization(const Package& package) {
  if (!package.metadata || package.metadata->outputs.empty()) return {};
  const MetadataTensor& described = package.metadata->outputs[0];
  return {described.scale, described.zero_point};
}

class Judge {
 public:
  Judge(LoadedPackage& loaded, const JudgeContext& context, CaseResult& result)
      : loaded_(loaded), context_(context), result_(result) {}

  void run(const std::filesystem::path& path) {
    const GoldenCase golden = read_golden_case(path);
    check_artifact(golden);
    const std::filesystem::path picture = context_.images / golden.picture.file;
    if (!is_there(picture)) {
      result_.status = CaseStatus::kSkipped;
      result_.failures.clear();
      result_.skipped_because =
          "the picture " + path_in_quotes(picture) + " is not there: scripts/fetch_pictures";
      return;
    }
    check_picture(golden, picture);
    Stopwatch stopwatch;
    PreprocessReport prepared;
    const Tensor input = fill_input(loaded_.executor, golden, context_.images, &prepared);
    result_.preprocess_ms = stopwatch.lap();
    check_input(golden, input);
    stopwatch.lap();
    loaded_.executor.run();
    result_.run_ms = stopwatch.lap();
    if (golden.tasks.empty()) {
      compare(golden);
    } else {
      compare_results_of(golden, prepared);
    }
  }

 private:
  void check_artifact(const GoldenCase& golden) {
    if (golden.model != context_.model) {
      result_.fail("artifact", path_in_quotes(golden.path) + " is a case of the model " +
                                   in_quotes(golden.model) + ", not of " +
                                   in_quotes(context_.model));
    }
    const Package& package = loaded_.package;
    if (!package.metadata) return;
    const std::string& compiled = package.metadata->source_sha256;
    if (!compiled.empty() && compiled != golden.source_sha256) {
      result_.fail("artifact", path_in_quotes(package.metadata_path) +
                                   " says that the artifact was compiled from the file " +
                                   short_hash(compiled) + ", and the golden case is of " +
                                   short_hash(golden.source_sha256) +
                                   "; compile the case's network, or make the golden case again "
                                   "with scripts/make_golden");
    }
    if (package.metadata->preprocessing &&
        !(*package.metadata->preprocessing == golden.preprocessing)) {
      result_.fail("artifact", path_in_quotes(package.metadata_path) +
                                   " describes another preprocessing than the golden case; compile "
                                   "the model again with the case's");
    }
  }

  void check_picture(const GoldenCase& golden, const std::filesystem::path& picture) {
    const std::vector<std::byte> bytes =
        read_file(picture, static_cast<std::size_t>(kMaxImageFileBytes), "a picture");
    const std::string found = sha256_hex(bytes);
    if (found == golden.picture.sha256) return;
    result_.fail("picture", path_in_quotes(picture) + " has the SHA-256 " + short_hash(found) +
                                ", and the golden case is of " + short_hash(golden.picture.sha256) +
                                "; copy the case's picture, or make the golden case again");
  }

  void check_input(const GoldenCase& golden, const Tensor& input) {
    result_.input_compared = true;
    const std::span bytes(static_cast<const std::byte*>(input.data()), input.nbytes());
    const std::string found = sha256_hex(bytes);
    if (found == golden.input.sha256) return;
    result_.fail("input", "the preprocessed tensor has the SHA-256 " + short_hash(found) +
                              ", expected " + short_hash(golden.input.sha256) +
                              ": the picture's pixels or the preprocessing differ from the "
                              "reference's");
  }

  void compare(const GoldenCase& golden) {
    if (loaded_.executor.outputs().empty()) {
      result_.fail("output", "the model has no output");
      return;
    }
    const Tensor output = loaded_.executor.output(0);
    if (output.shape() != golden.output_shape) {
      result_.fail("output", "the model's output has the shape " + shape_name(output.shape()) +
                                 ", expected " + shape_name(golden.output_shape));
      return;
    }
    const ToleranceEntry& entry =
        context_.tolerances->find(context_.model, context_.target, golden.kind);
    const std::span<const float> reference = golden.output.elements<float>();
    const std::vector<double> expected(reference.begin(), reference.end());
    const std::vector<double> actual =
        class_scores(output, first_output_quantization(loaded_.package));
    const ScoreComparison comparison = compare_scores(expected, actual, entry.tolerance);
    for (const ScoreFailure& failure : comparison.failures) {
      result_.fail(std::string(score_rule_name(failure.rule)), failure.message);
    }
    record(golden, entry, comparison, expected, actual);
  }

  void compare_results_of(const GoldenCase& golden, const PreprocessReport& prepared) {
    const Metadata* metadata = loaded_.package.metadata ? &*loaded_.package.metadata : nullptr;
    // What a user of the artifact gets; the case's where the artifact does not say.
    const bool own = metadata != nullptr && !metadata->tasks.empty();
    const std::vector<Task>& tasks = own ? metadata->tasks : golden.tasks;
    if (tasks.size() != golden.tasks.size()) {
      result_.fail("artifact", path_in_quotes(loaded_.package.metadata_path) + " has " +
                                   std::to_string(tasks.size()) +
                                   " tasks, and the golden case has " +
                                   std::to_string(golden.tasks.size()));
      return;
    }
    const std::vector<NetworkOutput> outputs = network_outputs(loaded_.executor, metadata);
    std::vector<TaskResult> results;
    for (const Task& task : tasks) results.push_back(postprocess(task, outputs, prepared));
    const ResultToleranceEntry& entry =
        context_.tolerances->find_results(context_.model, context_.target);
    ResultComparison comparison =
        compare_results(golden.tasks, golden.results, results, entry.tolerance);
    for (const ResultFailure& failure : comparison.failures) {
      result_.fail(failure.rule, failure.message);
    }
    result_.results_compared = true;
    result_.measures = std::move(comparison.measures);
  }

  void record(const GoldenCase& golden, const ToleranceEntry& entry,
              const ScoreComparison& comparison, std::span<const double> expected,
              std::span<const double> actual) {
    result_.compared = true;
    CaseScores& scores = result_.scores;
    scores.kind = golden.kind;
    scores.tolerance = entry.tolerance;
    scores.top1_equal = true;
    scores.top5_equal = true;
    for (const ScoreFailure& failure : comparison.failures) {
      if (failure.rule == ScoreRule::kTop1) scores.top1_equal = false;
      if (failure.rule == ScoreRule::kTop5) scores.top5_equal = false;
    }
    scores.largest_error = comparison.largest_error;
    scores.largest_error_index = comparison.largest_error_index;
    scores.tolerance_used = comparison.tolerance_used;
    for (const std::size_t index : comparison.expected_top) {
      scores.expected_top.push_back({index, label(golden, index), expected[index]});
    }
    for (const std::size_t index : comparison.actual_top) {
      scores.actual_top.push_back({index, label(golden, index), actual[index]});
    }
  }

  std::string label(const GoldenCase& golden, std::size_t index) const {
    for (const GoldenClass& known : golden.top) {
      if (known.index == index) return known.label;
    }
    const std::size_t classes = class_count(golden.output_shape);
    return context_.labels.size() == classes ? context_.labels[index] : "";
  }

  LoadedPackage& loaded_;
  const JudgeContext& context_;
  CaseResult& result_;
};

}  // namespace

Tensor fill_input(GraphExecutor& executor, const GoldenCase& golden,
                  const std::filesystem::path& images, PreprocessReport* report) {
  const std::size_t index = executor.input_index(golden.input.name);
  const TensorInfo& info = executor.inputs()[index];
  if (info.shape != golden.input.shape || !same_dtype(info.dtype, golden.input.dtype)) {
    throw Error(ErrorKind::kMismatch,
                "the model's input " + in_quotes(info.name) + " is " +
                    tensor_form_name(info.dtype, info.shape) + ", and the golden case has " +
                    tensor_form_name(golden.input.dtype, golden.input.shape),
                "compare with the golden case of the same model");
  }
  const Picture picture = load_picture((images / golden.picture.file).string());
  const Tensor input = executor.input(index);
  preprocess_into(picture.image, golden.preprocessing, golden.input.layout, input, report);
  return input;
}

CaseResult judge_case(LoadedPackage& loaded, const std::filesystem::path& golden,
                      const std::string& picture, const JudgeContext& context) {
  CaseResult result;
  result.picture = picture;
  try {
    Judge(loaded, context, result).run(golden);
  } catch (const Error& error) {
    result.fail(error.kind() == ErrorKind::kModel ? std::string("finite") : std::string("error"),
                error.what());
  }
  return result;
}

}  // namespace run_model
