// What scripts/make_preprocess_fixtures made, and the patterns that it made it from.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include <run_model/image.h>

namespace run_model::fixtures {

// The same pixels as pattern() in scripts/run_model_tools/fixtures/made_pictures.py.
Image make_pattern(int width, int height, std::uint32_t seed);

// zlib's CRC-32.
std::uint32_t checksum(std::span<const std::uint8_t> bytes);
std::uint32_t checksum(const Image& image);

std::string data_path(const std::string& name);    // in tests/preprocess/data
std::string source_path(const std::string& name);  // in the repository
std::vector<std::uint8_t> read_file(const std::string& path);
nlohmann::json read_json(const std::string& name);

// What pictures.json says of each picture; under an emulator without those in WebP, for which it
// has no library.
nlohmann::json pictures();

// "0aff…" as bytes.
std::vector<std::uint8_t> from_hex(const std::string& hex);

// Empty when all pixels are equal, else where the first one that is not lies, and its two values.
std::string difference(const Image& image, std::span<const std::uint8_t> expected);

}  // namespace run_model::fixtures
