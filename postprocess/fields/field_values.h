// Members of a description that have a default, and lists of numbers.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/json.h"

namespace run_model {

inline constexpr std::int64_t kMaxFieldSide = 65535;

inline double number_or(const JsonField& object, std::string_view key, double standard) {
  const auto field = find_member(object, key);
  return field ? field->number() : standard;
}

inline bool flag_or(const JsonField& object, std::string_view key, bool standard) {
  const auto field = find_member(object, key);
  return field ? field->boolean() : standard;
}

inline std::size_t count_or(const JsonField& object, std::string_view key, std::size_t standard,
                            std::int64_t most) {
  const auto field = find_member(object, key);
  return field ? static_cast<std::size_t>(field->integer(0, most)) : standard;
}

inline int side_field(const JsonField& field) {
  return static_cast<int>(field.integer(1, kMaxFieldSide));
}

// One of an enumeration's names.
template <typename Enum, std::size_t N>
Enum enum_field(const JsonField& field, const EnumNames<Enum, N>& names) {
  return *names.find(one_of(field, names.names()));
}

template <typename Enum, std::size_t N>
Enum enum_or(const JsonField& object, std::string_view key, const EnumNames<Enum, N>& names,
             Enum standard) {
  const auto field = find_member(object, key);
  return field ? enum_field(*field, names) : standard;
}

// What `read` makes of each element.
template <typename Read>
auto list_field(const JsonField& field, Read&& read) {
  std::vector<decltype(read(field))> list;
  for (std::size_t i = 0; i < field.array_size(); ++i) list.push_back(read(field.at(i)));
  return list;
}

template <std::size_t N, typename Read>
auto fixed_list_field(const JsonField& field, Read&& read) {
  std::array<decltype(read(field)), N> list{};
  if (field.array_size() != N) {
    field.fail("has " + std::to_string(field.array_size()) + " elements, expected " +
               std::to_string(N));
  }
  for (std::size_t i = 0; i < N; ++i) list[i] = read(field.at(i));
  return list;
}

}  // namespace run_model
