#include "base/json_reading.h"

#include <algorithm>
#include <limits>

#include <run_model/error.h>
#include "base/quoted.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxDimensions = 32;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::optional<JsonField> find_member(const JsonField& object, std::string_view key) {
  if (!object.has(key) || object.member(key).is_null()) return std::nullopt;
  return object.member(key);
}

std::string text_or_empty(const JsonField& object, std::string_view key) {
  const std::optional<JsonField> field = find_member(object, key);
  return field ? field->string() : "";
}

std::string one_of(const JsonField& field, std::initializer_list<std::string_view> words) {
  const std::string& value = field.string();
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string known;
  for (const std::string_view word : words) {
    if (!known.empty()) known += ", ";
    known += word;
  }
  field.fail("is " + in_quotes(value) + ", expected one of " + known);
}

double positive_number(const JsonField& field) {
  const double value = field.number();
  if (!(value > 0)) field.fail("is not more than 0");
  return value;
}

std::vector<std::int64_t> shape_field(const JsonField& field) {
  std::vector<std::int64_t> shape;
  if (field.array_size() > kMaxDimensions) field.fail("has too many dimensions");
  for (std::size_t i = 0; i < field.array_size(); ++i) {
    shape.push_back(field.at(i).integer(0, kMaxInt64));
  }
  return shape;
}

std::string sha256_field(const JsonField& field) {
  const std::string& text = field.string();
  if (!is_hex(text, 64)) field.fail("is not 64 lower-case hexadecimal digits");
  return text;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

void refuse_other_members(const JsonField& object, std::span<const std::string_view> known) {
  for (const std::string& key : object.keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      object.member(key).fail("is not a field that this version knows");
    }
  }
}

void check_schema_version(const JsonField& root, std::int64_t known, const std::string& name,
                          const std::string& hint) {
  const std::int64_t schema = root.member("schema_version").integer(1, kMaxInt64);
  if (schema == known) return;
  throw Error(ErrorKind::kIncompatible,
              name + " has schema_version " + std::to_string(schema) + ", and this program knows " +
                  std::to_string(known),
              hint);
}

}  // namespace run_model
