// The shaders beside this file, as a library carries them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>
#include "base/file.h"
#include "runtime/devices/code/device_code.h"

namespace run_model {

inline std::vector<std::uint32_t> shader_words(const std::string& name) {
  const std::vector<std::byte> bytes =
      read_file(std::string(SHADER_FOLDER "/") + name + ".spv", 1 << 20, "a shader");
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), 4 * words.size());
  return words;
}

inline constexpr DLDataType kBuffer{kDLOpaqueHandle, 64, 1};
inline constexpr DLDataType kInt32{kDLInt, 32, 1};
inline constexpr DLDataType kUInt32{kDLUInt, 32, 1};
inline constexpr DLDataType kInt64{kDLInt, 64, 1};
inline constexpr DLDataType kFloat{kDLFloat, 32, 1};
inline constexpr DLDataType kFloat64{kDLFloat, 64, 1};

class ShaderSet {
 public:
  ShaderSet() {
    code_->device = kDLVulkan;
    code_->format = "vulkan";
  }
  ShaderSet& add(const std::string& kernel, std::vector<DLDataType> arguments,
                 std::vector<std::uint32_t> words, std::uint32_t flags = 0) {
    code_->kernels.push_back({kernel, std::move(arguments), {"blockIdx.x", "threadIdx.x"}});
    code_->shaders.push_back({kernel, flags, std::move(words)});
    return *this;
  }
  ShaderSet& add(const std::string& kernel, std::vector<DLDataType> arguments) {
    return add(kernel, std::move(arguments), shader_words(kernel));
  }
  std::shared_ptr<const DeviceCode> code() const { return code_; }

 private:
  std::shared_ptr<DeviceCode> code_ = std::make_shared<DeviceCode>();
};

}  // namespace run_model
