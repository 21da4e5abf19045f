#include "artifacts/metadata.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "artifacts/read_file.h"
#include "runtime/dtype.h"
#include "runtime/error.h"
#include "runtime/json_field.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDimensions = 32;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Absent and JSON's null are the same.
std::optional<JsonField> find(const JsonField& object, std::string_view key) {
  if (!object.has(key) || object.member(key).is_null()) return std::nullopt;
  return object.member(key);
}

std::string text_or_empty(const JsonField& object, std::string_view key) {
  const std::optional<JsonField> field = find(object, key);
  return field ? field->string() : "";
}

std::string word(const JsonField& field, std::initializer_list<std::string_view> words) {
  const std::string& value = field.string();
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string known;
  for (const std::string_view word : words) {
    if (!known.empty()) known += ", ";
    known += word;
  }
  field.fail("is " + in_quotes(value) + ", expected one of " + known);
}

double positive(const JsonField& field) {
  const double value = field.number();
  if (!(value > 0)) field.fail("is not more than 0");
  return value;
}

std::vector<std::int64_t> parse_shape(const JsonField& field) {
  std::vector<std::int64_t> shape;
  if (field.array_size() > kMaxDimensions) field.fail("has too many dimensions");
  for (std::size_t i = 0; i < field.array_size(); ++i) {
    shape.push_back(field.at(i).integer(0, kMaxInt64));
  }
  return shape;
}

MetadataTensor parse_tensor(const JsonField& field) {
  MetadataTensor tensor;
  tensor.name = field.member("name").string();
  tensor.shape = parse_shape(field.member("shape"));
  try {
    tensor.dtype = parse_dtype(field.member("dtype").string());
    tensor_bytes(tensor.shape, tensor.dtype);
  } catch (const Error& error) {
    field.fail(std::string("is unusable: ") + error.what());
  }
  if (const auto layout = find(field, "layout")) tensor.layout = word(*layout, {"NCHW", "NHWC"});
  if (const auto scale = find(field, "scale")) tensor.scale = positive(*scale);
  if (const auto zero = find(field, "zero_point")) {
    tensor.zero_point = zero->integer(std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max());
  }
  return tensor;
}

std::vector<MetadataTensor> parse_tensors(const JsonField& root, std::string_view key) {
  std::vector<MetadataTensor> tensors;
  const std::optional<JsonField> list = find(root, key);
  if (!list) return tensors;
  for (std::size_t i = 0; i < list->array_size(); ++i) {
    tensors.push_back(parse_tensor(list->at(i)));
  }
  return tensors;
}

std::array<float, 3> parse_channels(const JsonField& field) {
  std::array<float, 3> values{};
  if (field.array_size() != values.size()) {
    field.fail("has " + std::to_string(field.array_size()) +
               " values, expected three, one for each channel");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(field.at(i).number());
  }
  return values;
}

Preprocessing parse_preprocessing(const JsonField& field) {
  constexpr std::array<std::string_view, 9> kKnown{
      "resizer", "fit", "resize", "crop", "pad", "color_order", "divide_by", "mean", "std"};
  for (const std::string& key : field.keys()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
      field.member(key).fail("is not a field that this version knows");
    }
  }
  Preprocessing result;
  result.resizer = parse_resizer(
      word(field.member("resizer"), {"nearest", "pil-bilinear", "pil-bicubic", "cv2-linear"}));
  result.fit = parse_fit(word(field.member("fit"), {"crop", "squash", "letterbox"}));
  if (result.fit == Fit::kCrop) {
    result.resize = static_cast<int>(field.member("resize").integer(1, kMaxImageSide));
    result.crop = static_cast<int>(field.member("crop").integer(1, result.resize));
  }
  if (const auto pad = find(field, "pad")) {
    result.pad = static_cast<std::uint8_t>(pad->integer(0, 255));
  }
  result.color_order =
      parse_color_order(word(field.member("color_order"), {"RGB", "BGR", "GRAY"}));
  result.divide_by = static_cast<float>(positive(field.member("divide_by")));
  result.mean = parse_channels(field.member("mean"));
  result.std = parse_channels(field.member("std"));
  for (std::size_t i = 0; i < result.std.size(); ++i) positive(field.member("std").at(i));
  return result;
}

MetadataFile parse_file(const JsonField& field) {
  MetadataFile file;
  file.bytes = static_cast<std::uint64_t>(field.member("bytes").integer(0, kMaxInt64));
  file.sha256 = text_or_empty(field, "sha256");
  if (!file.sha256.empty() && !is_hex(file.sha256, 64)) {
    field.member("sha256").fail("is not 64 lower-case hexadecimal digits");
  }
  if (const auto digits = find(field, "xxh3_64")) {
    const std::string& text = digits->string();
    if (!is_hex(text, 16)) digits->fail("is not 16 lower-case hexadecimal digits");
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    file.xxh3_64 = value;
  }
  return file;
}

void check_schema(const JsonField& root, const std::string& name) {
  const std::int64_t schema = root.member("schema_version").integer(1, kMaxInt64);
  if (schema == kMetadataSchema) return;
  throw Error(ErrorCode::kIncompatible,
              name + " has schema_version " + std::to_string(schema) + ", and this program knows " +
                  std::to_string(kMetadataSchema),
              "use a newer run_model, or compile the model with the scripts of this one");
}

}  // namespace

Metadata parse_metadata(std::string_view text, const std::string& name) {
  const nlohmann::json document = JsonField::parse(text, name);
  const JsonField root(document, name);
  check_schema(root, name);

  Metadata metadata;
  metadata.model = text_or_empty(root, "model");
  metadata.tvm_version = text_or_empty(root, "tvm_version");
  if (const auto target = find(root, "target")) {
    metadata.target_name = text_or_empty(*target, "name");
    metadata.target = text_or_empty(*target, "tvm");
    metadata.machine = text_or_empty(*target, "machine");
  }
  metadata.inputs = parse_tensors(root, "inputs");
  metadata.outputs = parse_tensors(root, "outputs");
  if (const auto field = find(root, "preprocessing")) {
    metadata.preprocessing = parse_preprocessing(*field);
  }
  if (const auto files = find(root, "files")) {
    for (const std::string& file : files->keys()) {
      metadata.files[file] = parse_file(files->member(file));
    }
  }
  return metadata;
}

Metadata read_metadata(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxFileBytes, "an artifact's metadata");
  return parse_metadata(as_text(bytes), path_in_quotes(path));
}

}  // namespace run_model
