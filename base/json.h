// Checked access to untrusted JSON: every failure is an Error(kFormat) that names the file and the
// place in it. The parser stays behind it: it takes seconds to compile.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/error.h>

namespace run_model {

// What messages call a document, and what they advise; without advice it is a compiler's file.
struct JsonSource {
  std::string name;
  std::string advice;
};

// A value of a JSON document together with where it stands ("nodes[3].attrs").
class JsonField {
 public:
  // `value` and `source` must outlive the field.
  JsonField(const nlohmann::json& value, const JsonSource& source, std::string path = "")
      : value_(&value), source_(&source), path_(std::move(path)) {}

  // Each throws Error(kFormat) when the value is not of that kind, or lacks that member or element.
  JsonField member(std::string_view key) const;
  bool has(std::string_view key) const;
  std::size_t array_size() const;  // of an array
  JsonField at(std::size_t index) const;
  const std::string& string() const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  double number() const;                  // finite
  std::vector<std::string> keys() const;  // of an object
  bool is_null() const;
  bool is_string() const;
  bool is_array() const;
  bool boolean() const;

  // The message: "<source>: <path> <problem>".
  [[noreturn]] void fail(const std::string& problem) const;
  // The same: "is unusable: <what>".
  [[noreturn]] void fail(const Error& why) const;

 private:
  const nlohmann::json* value_;
  const JsonSource* source_;
  std::string path_;
};

// A whole parsed document.
class JsonDocument {
 public:
  // Throws Error(kFormat) naming `source` and the byte where it goes wrong.
  JsonDocument(std::string_view text, std::string source, std::string advice = "");
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // Valid as long as the document.
  JsonField root() const { return {*value_, source_}; }
  const nlohmann::json& value() const { return *value_; }

 private:
  JsonSource source_;
  std::unique_ptr<const nlohmann::json> value_;
};

// What the readers of the project's own files share.

// The member, where it is there and not null: absent and JSON's null are the same.
std::optional<JsonField> find_member(const JsonField& object, std::string_view key);

std::string text_or_empty(const JsonField& object, std::string_view key);

// A string that must be one of `words`.
std::string one_of(const JsonField& field, std::span<const std::string_view> words);
inline std::string one_of(const JsonField& field, std::initializer_list<std::string_view> words) {
  return one_of(field, std::span(words.begin(), words.size()));
}

// What `parse` makes of the string; what it throws is said of the field.
template <typename Parse>
auto parsed_field(const JsonField& field, Parse parse) {
  const std::string& text = field.string();
  try {
    return parse(text);
  } catch (const Error& error) {
    field.fail(error);
  }
}

std::vector<std::string> strings_field(const JsonField& field);

// A number above 0.
double positive_number(const JsonField& field);

// A list of dimensions, each at least 0, at most 32 of them.
std::vector<std::int64_t> shape_field(const JsonField& field, std::int64_t least = 0);

// 64 lower-case hexadecimal digits.
std::string sha256_field(const JsonField& field);

// Refuses members beyond `known`: a setting that is not understood would be ignored silently.
void refuse_other_members(const JsonField& object, std::span<const std::string_view> known);

// Throws Error(kIncompatible) unless the document's schema_version is `known`. `name` begins the
// sentence, and `hint` says what to do.
void check_schema_version(const JsonField& root, std::int64_t known, const std::string& name,
                          const std::string& hint);

}  // namespace run_model
