// Every small way in which a file can be damaged, one after the other.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tests/damage_stride.h"

namespace run_model::corruption {

// Takes what was done ("byte 17 ^ 0xff") and the damaged content.
using Visit = std::function<void(const std::string& description, const std::string& content)>;

// How densely a file is damaged: at every `stride`-th position.
struct Density {
  std::size_t stride = damage_stride();
};

// Cut off after 0, 1, 2 … bytes.
void for_each_truncation(const std::string& content, const Visit& visit, Density density = {});

// One byte with its lowest, highest or all bits inverted, or 0.
void for_each_changed_byte(const std::string& content, const Visit& visit, Density density = {});

// Four or eight bytes replaced by a little-endian number that no count, size or offset can have.
void for_each_huge_number(const std::string& content, const Visit& visit, Density density = {});

// Bytes put in or taken out somewhere, and more put at the end: a byte, a page of zeros, the file
// itself once more.
void for_each_shift(const std::string& content, const Visit& visit, Density density = {});

// All of the above.
void for_each_damage(const std::string& content, const Visit& visit, Density density = {});

// Well-formed JSON of which one value was replaced by one of another type or size, taken out, or
// (in lists) doubled.
void for_each_json_change(const nlohmann::json& document, const Visit& visit);

// Puts `content` where `path` is, as another file: writing over the old one makes some file systems
// wait for the disk, thousands of times.
void replace_file(const std::filesystem::path& path, const std::string& content);

}  // namespace run_model::corruption
