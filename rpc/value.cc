#include <run_model/rpc/value.h>

#include <array>
#include <cstring>

namespace run_model::rpc {

Bytes Bytes::copy_of(std::span<const std::byte> data) {
  const auto memory = std::make_shared_for_overwrite<std::byte[]>(data.size());
  if (!data.empty()) std::memcpy(memory.get(), data.data(), data.size());
  return {memory, {memory.get(), data.size()}};
}

std::string kind_name(const Value& value) {
  // In the order of Value's alternatives.
  static constexpr std::array<const char*, std::variant_size_v<Value>> kNames = {
      "null",     "an integer",      "a number", "a bool",           "a text",
      "bytes",    "an element type", "a device", "an opaque handle", "a tensor",
      "a tensor", "a function",      "a module", "an object"};
  return kNames.at(value.index());
}

}  // namespace run_model::rpc
