// JSON as the programs write it: values that are put together piece by piece and keep the order in
// which their members were set. (What they read goes through base/json.h.)
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace run_model {

// The schema_version of every report.
inline constexpr int kReportSchema = 1;

// What is put together of values reads as JSON does only where they turn into it by themselves.
// NOLINTBEGIN(google-explicit-constructor)
class Json {
 public:
  Json();  // null
  ~Json();
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;

  explicit(false) Json(std::string_view text);
  explicit(false) Json(const std::string& text) : Json(std::string_view(text)) {}
  explicit(false) Json(const char* text) : Json(std::string_view(text)) {}
  Json(std::nullptr_t) = delete;        // it would be taken for a text: null is Json()
  explicit(false) Json(double number);  // null for NaN and infinity
  template <std::integral T>
  explicit(false) Json(T value) : Json() {
    if constexpr (std::same_as<T, bool>) {
      scalar_ = value ? "true" : "false";
    } else if constexpr (std::signed_integral<T>) {
      set_integer(value);
    } else {
      set_count(value);
    }
  }
  template <typename T>
  explicit(false) Json(const std::vector<T>& list) : Json(kArray) {
    for (const T& item : list) add(item);
  }
  // Null for nothing.
  template <typename T>
  explicit(false) Json(const std::optional<T>& value) : Json() {
    if (value) *this = Json(*value);
  }

  using Member = std::pair<const char*, Json>;
  static Json object(std::initializer_list<Member> members = {});
  static Json array(std::initializer_list<Json> items = {});

  // Sets a member, anew where it is there. Null becomes an object, anything else is left to be one.
  void put(std::string_view key, Json value);

  // Adds an element to an array; null becomes one.
  void add(Json item);

  // On one line without spaces. With `ascii`, all other characters are escaped.
  std::string compact(bool ascii = false) const;

  // For people too: lists and objects stay on one line of 80 columns where they fit; the whole
  // document never does. With a newline at the end.
  std::string text() const;

 private:
  enum Kind { kScalar, kArray, kObject };

  explicit Json(Kind kind);
  void set_integer(std::int64_t value);
  void set_count(std::uint64_t value);

  std::string on_one_line() const;
  void append(std::string& text, std::size_t depth) const;
  void append_filled(std::string& text, std::size_t depth) const;

  Kind kind_ = kScalar;
  std::string scalar_ = "null";  // as it is written
  std::vector<std::string> keys_;
  std::vector<Json> items_;
};
// NOLINTEND(google-explicit-constructor)

// Null for an empty text.
Json text_or_null(const std::string& text);

}  // namespace run_model
