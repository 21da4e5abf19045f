#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxDimensions = 32;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

// A list or object by its kind only: printing it recurses as deeply as an untrusted file nests it.
std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return in_quotes(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

[[noreturn]] void refuse(const JsonSource& source, const std::string& problem,
                         const std::string& advice) {
  throw Error(ErrorKind::kFormat, source.name + " is no " + problem,
              source.advice.empty() ? advice : source.advice);
}

nlohmann::json parse(std::string_view text, const JsonSource& source) {
  // The parser takes a zero byte for the end of the text, whatever follows it.
  if (std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    refuse(source, "valid JSON: byte " + std::to_string(zero + 1) + " is a zero byte",
           "check that the library, graph and parameter files were not swapped or damaged");
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) {
      refuse(source, "JSON: it does not start with '{' or '['",
             "check that the library, graph and parameter files were not swapped");
    }
    refuse(source, "valid JSON from byte " + std::to_string(error.byte) + " on",
           "copy the file again, it may be damaged or cut short");
  } catch (const nlohmann::json::out_of_range&) {
    refuse(source, "usable JSON: it holds a number out of range", "");
  }
}

}  // namespace

JsonField JsonField::member(std::string_view key) const {
  if (!value_->is_object()) fail("is no object");
  auto found = value_->find(key);
  if (found == value_->end()) fail("has no member " + in_quotes(key));
  std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  return {*found, *source_, std::move(path)};
}

bool JsonField::has(std::string_view key) const {
  return value_->is_object() && value_->contains(key);
}

std::size_t JsonField::array_size() const {
  if (!value_->is_array()) fail("is no list");
  return value_->size();
}

JsonField JsonField::at(std::size_t index) const {
  if (index >= array_size()) {
    fail("has " + std::to_string(value_->size()) + " elements, expected more");
  }
  return {(*value_)[index], *source_, path_ + "[" + std::to_string(index) + "]"};
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail("is no string");
  return value_->get_ref<const std::string&>();
}

double JsonField::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) {
    fail("is " + shown(*value_) + ", expected a number");
  }
  return value_->get<double>();
}

std::vector<std::string> JsonField::keys() const {
  if (!value_->is_object()) fail("is no object");
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

bool JsonField::is_null() const { return value_->is_null(); }

bool JsonField::is_string() const { return value_->is_string(); }

bool JsonField::is_array() const { return value_->is_array(); }

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("is " + shown(*value_) + ", expected true or false");
  return value_->get<bool>();
}

std::int64_t JsonField::integer(std::int64_t min, std::int64_t max) const {
  bool integral = value_->is_number_integer();
  bool too_large = value_->is_number_unsigned() &&
                   value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (!integral || too_large) {
    // Only a number's text is shown: dump() of nested lists recurses as deep as the file says.
    std::string found =
        value_->is_number() ? value_->dump() : std::string("a ") + value_->type_name();
    fail("is " + found + ", expected a whole number");
  }
  std::int64_t value = value_->get<std::int64_t>();
  if (value < min || value > max) {
    fail("is " + std::to_string(value) + ", expected " + std::to_string(min) + " to " +
         std::to_string(max));
  }
  return value;
}

void JsonField::fail(const std::string& problem) const {
  throw Error(
      ErrorKind::kFormat,
      source_->name + ": " + (path_.empty() ? std::string("the document") : path_) + " " + problem,
      source_->advice.empty()
          ? "compile the model again, or copy the file again if it may be damaged"
          : source_->advice);
}

void JsonField::fail(const Error& why) const { fail(std::string("is unusable: ") + why.what()); }

JsonDocument::JsonDocument(std::string_view text, std::string source, std::string advice)
    : source_{std::move(source), std::move(advice)},
      value_(std::make_unique<const nlohmann::json>(parse(text, source_))) {}

JsonDocument::~JsonDocument() = default;

std::optional<JsonField> find_member(const JsonField& object, std::string_view key) {
  if (!object.has(key) || object.member(key).is_null()) return std::nullopt;
  return object.member(key);
}

std::string text_or_empty(const JsonField& object, std::string_view key) {
  const std::optional<JsonField> field = find_member(object, key);
  return field ? field->string() : "";
}

std::string one_of(const JsonField& field, std::span<const std::string_view> words) {
  const std::string& value = field.string();
  if (std::find(words.begin(), words.end(), value) != words.end()) return value;
  std::string known;
  for (const std::string_view word : words) {
    if (!known.empty()) known += ", ";
    known += word;
  }
  field.fail("is " + in_quotes(value) + ", expected one of " + known);
}

std::vector<std::string> strings_field(const JsonField& field) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < field.array_size(); ++i) strings.push_back(field.at(i).string());
  return strings;
}

double positive_number(const JsonField& field) {
  const double value = field.number();
  if (!(value > 0)) field.fail("is not more than 0");
  return value;
}

std::vector<std::int64_t> shape_field(const JsonField& field, std::int64_t least) {
  std::vector<std::int64_t> shape;
  if (field.array_size() > kMaxDimensions) field.fail("has too many dimensions");
  for (std::size_t i = 0; i < field.array_size(); ++i) {
    shape.push_back(field.at(i).integer(least, kMaxInt64));
  }
  return shape;
}

std::string sha256_field(const JsonField& field) {
  const std::string& text = field.string();
  if (!is_hex(text, 64)) field.fail("is not 64 lower-case hexadecimal digits");
  return text;
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
