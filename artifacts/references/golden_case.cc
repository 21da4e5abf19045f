#include "artifacts/references/golden_case.h"

#include <cmath>
#include <limits>
#include <set>

#include <run_model/class_scores.h>
#include <run_model/dtype.h>
#include <run_model/error.h>
#include <run_model/npy.h>
#include <run_model/top_k.h>
#include "artifacts/preprocessing_field.h"
#include "artifacts/references/golden_results.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "postprocess/fields/task_fields.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxGoldenBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxTop = 1000;
constexpr char kRemake[] = "make the case again with scripts/make_golden";

// The name is put after the folder of the pictures: it must not lead out of it.
std::string file_name(const JsonField& field) {
  const std::string& name = field.string();
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos) {
    field.fail("is " + in_quotes(name) + ", expected a file's name without folders");
  }
  return name;
}

GoldenPicture parse_picture(const JsonField& field) {
  GoldenPicture picture;
  picture.file = file_name(field.member("file"));
  picture.sha256 = sha256_field(field.member("sha256"));
  return picture;
}

GoldenInput parse_input(const JsonField& field) {
  GoldenInput input;
  input.name = field.member("name").string();
  input.shape = shape_field(field.member("shape"));
  try {
    input.dtype = parse_dtype(field.member("dtype").string());
    tensor_bytes(input.shape, input.dtype);
  } catch (const Error& error) {
    field.fail(error);
  }
  input.layout = parsed_field(field.member("layout"), parse_layout);
  input.sha256 = sha256_field(field.member("sha256"));
  return input;
}

std::vector<GoldenClass> parse_top(const JsonField& field, std::size_t classes) {
  const std::size_t count = field.array_size();
  if (count == 0 || count > kMaxTop) {
    field.fail("has " + std::to_string(count) + " classes, expected 1 to " +
               std::to_string(kMaxTop));
  }
  std::vector<GoldenClass> top;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonField item = field.at(i);
    GoldenClass best;
    best.index = static_cast<std::size_t>(
        item.member("index").integer(0, static_cast<std::int64_t>(classes) - 1));
    best.label = item.member("label").string();
    best.probability = item.member("probability").number();
    if (!seen.insert(best.index).second) item.fail("names a class for the second time");
    top.push_back(std::move(best));
  }
  return top;
}

// An array of another case beside this description would make every comparison meaningless.
void check_output(const GoldenCase& golden, const std::filesystem::path& array) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kFormat, path_in_quotes(array) + " " + problem, kRemake);
  };
  const Tensor& output = golden.output;
  if (output.shape() != golden.output_shape ||
      !same_dtype(output.dtype(), DLDataType{kDLFloat, 32, 1})) {
    refuse("is " + tensor_form_name(output.dtype(), output.shape()) + ", but " +
           path_in_quotes(golden.path) + " says float32 " + shape_name(golden.output_shape));
  }
  const std::span<const float> values = output.elements<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) refuse("holds NaN or infinity at " + std::to_string(i));
  }
  const std::vector<double> scores(values.begin(), values.end());
  const std::vector<Prediction> best = top_k(scores, golden.top.size());
  for (std::size_t i = 0; i < golden.top.size(); ++i) {
    if (i < best.size() && best[i].index == golden.top[i].index) continue;
    refuse("does not have the best classes that " + path_in_quotes(golden.path) + " lists");
  }
}

void parse_scores(const JsonField& root, GoldenCase& golden) {
  const JsonField output = root.member("output");
  golden.kind = parsed_field(output.member("kind"), parse_score_kind);
  golden.output_shape = shape_field(output.member("shape"));
  std::size_t classes = 0;
  try {
    classes = class_count(golden.output_shape);
  } catch (const Error& error) {
    output.fail(error);
  }
  golden.top = parse_top(root.member("top"), classes);
}

}  // namespace

GoldenCase parse_golden_case(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonField root = document.root();
  const bool has_tasks = root.has("tasks");
  check_schema_version(root, has_tasks ? kGoldenTasksSchema : kGoldenSchema, name,
                       "use a newer check_zoo, or make the case with the scripts of this one");
  GoldenCase golden;
  golden.model = root.member("model").string();
  golden.source_sha256 =
      sha256_field(root.member(root.has("tflite_sha256") ? "tflite_sha256" : "onnx_sha256"));
  golden.picture = parse_picture(root.member("picture"));
  golden.preprocessing = preprocessing_field(root.member("preprocessing"));
  golden.input = parse_input(root.member("input"));
  if (has_tasks) {
    golden.tasks = tasks_field(root.member("tasks"));
    golden.results = golden_results(root.member("results"), golden.tasks);
  } else {
    parse_scores(root, golden);
  }
  return golden;
}

GoldenCase read_golden_case(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxGoldenBytes, "a golden case");
  GoldenCase golden = parse_golden_case(as_text(bytes), path_in_quotes(path));
  golden.name = path.stem().string();
  golden.path = path;
  if (!golden.tasks.empty()) {
    read_golden_pixels(path, golden.results);
    return golden;
  }
  std::filesystem::path array = path;
  array.replace_extension(".npy");
  golden.output = read_npy(array);
  check_output(golden, array);
  return golden;
}

}  // namespace run_model
