// What the readers of the project's own JSON files share, on top of JsonField. Everything throws
// Error(kFormat) naming the file and the place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_field.h"

namespace run_model {

// The member, where it is there and not null: absent and JSON's null are the same.
std::optional<JsonField> find_member(const JsonField& object, std::string_view key);

std::string text_or_empty(const JsonField& object, std::string_view key);

// A string that must be one of `words`.
std::string one_of(const JsonField& field, std::initializer_list<std::string_view> words);

// A number above 0.
double positive_number(const JsonField& field);

// A list of dimensions, each at least 0, at most 32 of them.
std::vector<std::int64_t> shape_field(const JsonField& field);

// 64 lower-case hexadecimal digits.
std::string sha256_field(const JsonField& field);

bool is_hex(std::string_view text, std::size_t digits);

// Refuses members beyond `known`: a setting that is not understood would be ignored silently.
void refuse_other_members(const JsonField& object, std::span<const std::string_view> known);

// Throws Error(kIncompatible) unless the document's schema_version is `known`. `name` begins the
// sentence, and `hint` says what to do.
void check_schema_version(const JsonField& root, std::int64_t known, const std::string& name,
                          const std::string& hint);

}  // namespace run_model
