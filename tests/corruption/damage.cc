#include "tests/corruption/damage.h"

#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace run_model::corruption {
namespace {

using nlohmann::json;

std::string at(const char* what, std::size_t position) {
  return std::string(what) + " at byte " + std::to_string(position);
}

// The paths of all values below `value`, itself included.
void collect_paths(const json& value, const json::json_pointer& path,
                   std::vector<json::json_pointer>& paths) {
  paths.push_back(path);
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) collect_paths(inner, path / key, paths);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect_paths(value[i], path / i, paths);
  }
}

std::vector<json> replacements() {
  json deep = json::array();
  for (int i = 0; i < 50; ++i) deep = json::array({deep});
  return {nullptr,
          true,
          -1,
          0,
          1,
          2,
          1.5,
          1e300,
          2147483648,
          4294967296,
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::uint64_t>::max(),
          "",
          "-1",
          "99999999999999999999",
          "\x1b[31m\n\t",
          std::string(100, 'x'),
          json::array(),
          json::object(),
          json::array({0}),
          json::array({"list_int", json::array()}),
          deep};
}

}  // namespace

void for_each_truncation(const std::string& content, const Visit& visit, Density density) {
  for (std::size_t i = 0; i < content.size(); i += density.stride) {
    visit(at("cut off", i), content.substr(0, i));
  }
}

void for_each_changed_byte(const std::string& content, const Visit& visit, Density density) {
  std::string damaged = content;
  for (std::size_t i = 0; i < content.size(); i += density.stride) {
    auto original = static_cast<unsigned char>(content[i]);
    for (unsigned changed : {original ^ 0x01u, original ^ 0x80u, original ^ 0xffu, 0u}) {
      if (changed == original) continue;
      damaged[i] = static_cast<char>(changed);
      visit(at("changed", i) + " to " + std::to_string(changed), damaged);
    }
    damaged[i] = content[i];
  }
}

void for_each_huge_number(const std::string& content, const Visit& visit, Density density) {
  constexpr std::uint64_t kHuge[] = {0x7fffffff,
                                     0xffffffff,
                                     std::uint64_t{1} << 40,
                                     std::uint64_t{1} << 62,
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::uint64_t>::max()};
  for (std::size_t i = 0; i < content.size(); i += density.stride) {
    for (std::uint64_t number : kHuge) {
      for (std::size_t bytes : {4, 8}) {
        if (bytes == 4 && number > 0xffffffff) continue;
        if (i + bytes > content.size()) continue;
        std::string damaged = content;
        for (std::size_t k = 0; k < bytes; ++k) {
          damaged[i + k] = static_cast<char>(number >> (8 * k));
        }
        if (damaged == content) continue;
        visit(at("number", i) + " is " + std::to_string(number), damaged);
      }
    }
  }
}

void for_each_shift(const std::string& content, const Visit& visit, Density density) {
  for (std::size_t i = 0; i < content.size(); i += density.stride) {
    for (std::size_t bytes : {1, 8}) {
      std::string longer = content;
      longer.insert(i, bytes, content[i]);
      visit(at("bytes put in", i), longer);
      if (i + bytes <= content.size()) {
        std::string shorter = content;
        visit(at("bytes taken out", i), shorter.erase(i, bytes));
      }
    }
  }
  visit("a byte more", content + "\x01");
  visit("a page more", content + std::string(4096, '\0'));
  visit("twice", content + content);
}

void for_each_damage(const std::string& content, const Visit& visit, Density density) {
  for_each_truncation(content, visit, density);
  for_each_changed_byte(content, visit, density);
  for_each_huge_number(content, visit, density);
  for_each_shift(content, visit, density);
}

void for_each_json_change(const json& document, const Visit& visit) {
  std::vector<json::json_pointer> paths;
  collect_paths(document, json::json_pointer(), paths);
  for (const json::json_pointer& path : paths) {
    for (const json& replacement : replacements()) {
      json damaged = document;
      damaged[path] = replacement;
      if (damaged == document) continue;
      std::string text = damaged.dump();
      visit(path.to_string() + " is " + replacement.dump().substr(0, 40), text);
    }
    if (path.empty()) continue;
    json damaged = document;
    json& parent = damaged[path.parent_pointer()];
    if (parent.is_array()) {
      std::size_t index = std::stoul(path.back());
      parent.insert(parent.begin() + static_cast<std::ptrdiff_t>(index), parent[index]);
      visit(path.to_string() + " twice", damaged.dump());
      parent.erase(index);
      parent.erase(index);
    } else {
      parent.erase(path.back());
    }
    visit(path.to_string() + " left out", damaged.dump());
  }
}

void replace_file(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace run_model::corruption
