// Checked access to untrusted JSON: every failure names the file and the place in it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// A value of a JSON document together with where it stands ("nodes[3].attrs").
class JsonField {
 public:
  // Parses a whole document. Throws Error(kFormat) naming `source` and the byte where it goes
  // wrong.
  static nlohmann::json parse(std::string_view text, const std::string& source);

  // `value` and `source` must outlive the field.
  JsonField(const nlohmann::json& value, const std::string& source, std::string path = "")
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
  bool boolean() const;

  // The message: "<source>: <path> <problem>".
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const nlohmann::json* value_;
  const std::string* source_;
  std::string path_;
};

}  // namespace run_model
