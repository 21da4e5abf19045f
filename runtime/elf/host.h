// The machine and C library that this program runs on, as far as loading code depends on them.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/elf/target.h"

namespace run_model {

// A version of the GNU C library.
struct GlibcVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const GlibcVersion&) const = default;
};

// "2.36" or "2.36.1" (the rest is not looked at); nothing for any other text.
std::optional<GlibcVersion> parse_glibc_version(std::string_view text);

enum class SymbolSearch {
  kFound,
  kMissing,
  kUnknown,  // a library that may have it is not loaded yet
};

// Tests pass descriptions of other machines to the checks that take one.
struct Host {
  ElfTarget target;
  std::optional<GlibcVersion> glibc;  // nothing where the C library is another one (musl)
  // Whether a library loaded now, which itself needs `libraries` (DT_NEEDED), finds the function or
  // variable `symbol`. Loads nothing.
  std::function<SymbolSearch(const std::string& symbol,
                             std::span<const std::string_view> libraries)>
      find_symbol;

  // What this program was compiled for and runs with.
  static Host current();
};

}  // namespace run_model
