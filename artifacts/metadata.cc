#include <run_model/metadata.h>

#include <algorithm>
#include <limits>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "artifacts/preprocessing_field.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "postprocess/fields/task_fields.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxMetadataBytes = std::size_t{1} << 20;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

MetadataTensor parse_tensor(const JsonField& field) {
  MetadataTensor tensor;
  tensor.name = field.member("name").string();
  tensor.shape = shape_field(field.member("shape"), -1);
  std::vector<std::int64_t> least = tensor.shape;
  std::replace(least.begin(), least.end(), std::int64_t{-1}, std::int64_t{1});
  try {
    tensor.dtype = parse_dtype(field.member("dtype").string());
    tensor_bytes(least, tensor.dtype);
  } catch (const Error& error) {
    field.fail(error);
  }
  if (const auto layout = find_member(field, "layout")) {
    tensor.layout = layout_name(parsed_field(*layout, parse_layout));
  }
  if (const auto scale = find_member(field, "scale")) tensor.scale = positive_number(*scale);
  if (const auto zero = find_member(field, "zero_point")) {
    tensor.zero_point = zero->integer(std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max());
  }
  return tensor;
}

std::vector<MetadataTensor> parse_tensors(const JsonField& root, std::string_view key) {
  std::vector<MetadataTensor> tensors;
  const std::optional<JsonField> list = find_member(root, key);
  if (!list) return tensors;
  for (std::size_t i = 0; i < list->array_size(); ++i) {
    tensors.push_back(parse_tensor(list->at(i)));
  }
  return tensors;
}

MetadataFile parse_file(const JsonField& field) {
  MetadataFile file;
  file.bytes = static_cast<std::uint64_t>(field.member("bytes").integer(0, kMaxInt64));
  if (const auto digits = find_member(field, "sha256")) file.sha256 = sha256_field(*digits);
  if (const auto digits = find_member(field, "xxh3_64")) {
    const std::string& text = digits->string();
    if (!is_hex(text, 16)) digits->fail("is not 16 lower-case hexadecimal digits");
    file.xxh3_64 = hex_number(text);
  }
  return file;
}

}  // namespace

Metadata parse_metadata(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  const JsonField root = document.root();
  check_schema_version(root, kMetadataSchema, name,
                       "use a newer run_model, or compile the model with the scripts of this one");

  Metadata metadata;
  metadata.model = text_or_empty(root, "model");
  metadata.device = text_or_empty(root, "device");
  metadata.tvm_version = text_or_empty(root, "tvm_version");
  if (const auto target = find_member(root, "target")) {
    metadata.target_name = text_or_empty(*target, "name");
    metadata.target = text_or_empty(*target, "tvm");
    metadata.machine = text_or_empty(*target, "machine");
    if (const auto features = find_member(*target, "features")) {
      metadata.features = strings_field(*features);
    }
  }
  metadata.inputs = parse_tensors(root, "inputs");
  metadata.outputs = parse_tensors(root, "outputs");
  if (const auto field = find_member(root, "preprocessing")) {
    metadata.preprocessing = preprocessing_field(*field);
  }
  if (const auto tasks = find_member(root, "tasks")) metadata.tasks = tasks_field(*tasks);
  if (const auto source = find_member(root, "source")) {
    for (const std::string_view key : {"onnx_sha256", "tflite_sha256"}) {
      if (const auto digits = find_member(*source, key)) {
        metadata.source_sha256 = sha256_field(*digits);
      }
    }
  }
  if (const auto files = find_member(root, "files")) {
    for (const std::string& file : files->keys()) {
      metadata.files[file] = parse_file(files->member(file));
    }
  }
  return metadata;
}

Metadata read_metadata(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxMetadataBytes, "an artifact's metadata");
  return parse_metadata(as_text(bytes), path_in_quotes(path));
}

}  // namespace run_model
