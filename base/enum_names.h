// The names of an enumeration's values: one table for both directions and for what messages list.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace run_model {

// Throws Error(kUsage) "unknown <what> '<name>'; it is one of <list>".
[[noreturn]] void fail_unknown_name(std::string_view what, std::string_view name,
                                    const std::string& list);

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

// Make it with enum_names<Enum>({{Enum::kOne, "one"}, …}), as a constant beside the functions that
// a public header declares for it.
template <typename Enum, std::size_t N>
struct EnumNames {
  std::array<EnumName<Enum>, N> entries;

  // "unknown" for a value without a name, which no value has unless it was cast from a number.
  constexpr std::string_view name(Enum value) const {
    for (const EnumName<Enum>& entry : entries) {
      if (entry.value == value) return entry.name;
    }
    return "unknown";
  }

  constexpr std::optional<Enum> find(std::string_view name) const {
    for (const EnumName<Enum>& entry : entries) {
      if (entry.name == name) return entry.value;
    }
    return std::nullopt;
  }

  // The same, throwing Error(kUsage) "unknown <what> '<name>'; it is one of crop, squash".
  Enum parse(std::string_view name, std::string_view what) const {
    if (const std::optional<Enum> value = find(name)) return *value;
    fail_unknown_name(what, name, list());
  }

  constexpr std::array<std::string_view, N> names() const {
    std::array<std::string_view, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = entries[i].name;
    return result;
  }

  // "crop, squash, letterbox", or with `last` = " and " "crop, squash and letterbox".
  std::string list(std::string_view last = ", ") const {
    std::string text;
    for (std::size_t i = 0; i < N; ++i) {
      if (i > 0) text += i + 1 < N ? ", " : last;
      text += entries[i].name;
    }
    return text;
  }
};

template <typename Enum, std::size_t N>
constexpr EnumNames<Enum, N> enum_names(const EnumName<Enum> (&entries)[N]) {
  return {std::to_array(entries)};
}

}  // namespace run_model
