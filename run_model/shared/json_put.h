// Sets fields of a JSON object out of line: a report has a hundred of them, and what the JSON
// library makes of each in place takes hundreds of bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run_model/shared/json_values.h"

namespace run_model {

void put_null(Json& object, const char* key);
void put_number(Json& object, const char* key, double value);
void put_integer(Json& object, const char* key, std::int64_t value);
void put_flag(Json& object, const char* key, bool value);
void put_json(Json& object, const char* key, Json&& value);
void put(Json& object, const char* key, std::string_view text);
void put(Json& object, const char* key, const std::vector<std::string>& texts);
void put(Json& object, const char* key, const std::vector<int>& values);

inline void put(Json& object, const char* key, const std::string& text) {
  put(object, key, std::string_view(text));
}
inline void put(Json& object, const char* key, const char* text) {
  put(object, key, std::string_view(text));
}
template <std::integral T>
void put(Json& object, const char* key, T value) {
  if constexpr (std::same_as<T, bool>) {
    put_flag(object, key, value);
  } else {
    put_integer(object, key, static_cast<std::int64_t>(value));
  }
}
template <std::floating_point T>
void put(Json& object, const char* key, T value) {
  put_number(object, key, value);
}
// Null for nothing.
template <typename T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) {
    put(object, key, *value);
  } else {
    put_null(object, key);
  }
}

// Null for an empty text.
void put_text_or_null(Json& object, const char* key, const std::string& text);

}  // namespace run_model
