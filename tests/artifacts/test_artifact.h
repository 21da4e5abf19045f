// Files that look like a model's, as far as the artifact readers look.
#pragma once

#include <string>
#include <string_view>

#include "tests/temporary_folder.h"

namespace run_model {

// A shared library of this machine.
inline std::string library_bytes() { return TemporaryFolder::read(EMPTY_LIBRARY); }

// The same with another machine in its header: e_machine is the 16-bit field at offset 18.
inline std::string foreign_library_bytes() {
  std::string bytes = library_bytes();
  bytes[18] = static_cast<char>(bytes[18] ^ 0x55);
  return bytes;
}

inline constexpr std::string_view kGraphText = "{\"nodes\": []}";
inline const std::string kParamsBytes = std::string("\xB7\x9C\x04\x05\x4F\x8D\xE5\xF7") + "rest";

// stem.so, stem.json and stem.params.
inline void write_triple(const TemporaryFolder& folder, const std::string& stem) {
  folder.write(stem + ".so", library_bytes());
  folder.write(stem + ".json", kGraphText);
  folder.write(stem + ".params", kParamsBytes);
}

}  // namespace run_model
