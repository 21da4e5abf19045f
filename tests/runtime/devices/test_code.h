// Writes TVM's device modules for the tests, with code of its own rather than a copy of a reader's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include "tests/runtime/test_params.h"

namespace run_model::testing_code {

using testing_params::put;

inline std::string text(const std::string& value) {
  std::string out;
  put<std::uint64_t>(out, value.size());
  return out + value;
}

struct TestKernel {
  std::string name;
  std::vector<DLDataType> arguments;
  std::vector<std::string> tags;
  std::string second_name;
};

inline const DLDataType kBuffer{kDLOpaqueHandle, 64, 1};
inline const DLDataType kNumber{kDLInt, 32, 1};

inline TestKernel add_kernel(const std::string& name = "add_kernel") {
  return {name, {kBuffer, kBuffer, kNumber}, {"blockIdx.x", "threadIdx.x", "threadIdx.x"}, ""};
}

inline std::string table(const std::vector<TestKernel>& kernels) {
  std::string out;
  put<std::uint64_t>(out, kernels.size());
  for (const TestKernel& kernel : kernels) {
    out += text(kernel.name) + text(kernel.second_name);
    put<std::uint64_t>(out, kernel.arguments.size());
    for (const DLDataType& type : kernel.arguments) put(out, type);
    put<std::uint64_t>(out, kernel.tags.size());
    for (const std::string& tag : kernel.tags) out += text(tag);
  }
  return out;
}

inline std::string opencl_source(const std::string& kernel) {
  return "// Function: " + kernel + "\n__kernel void " + kernel + "(__global float* a) {}\n";
}

inline std::string ptx_source(const std::string& kernel) {
  return "//\n.version 8.5\n.target sm_80\n.address_size 64\n.visible .entry " + kernel +
         "(\n.param .u64 a)\n{\nret;\n}\n";
}

// Header, the entry point and a function that returns; not enough for a driver.
inline std::vector<std::uint32_t> spirv(const std::string& kernel) {
  std::vector<std::uint32_t> words{0x07230203, 0x00010000, 0, 8, 0};
  std::string literal = kernel;
  literal.resize(kernel.size() / 4 * 4 + 4, '\0');
  const auto length = static_cast<std::uint32_t>(3 + literal.size() / 4);
  words.insert(words.end(), {length << 16 | 15, 5, 4});
  for (std::size_t i = 0; i < literal.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      word |= static_cast<std::uint32_t>(static_cast<unsigned char>(literal[i + j])) << 8 * j;
    }
    words.push_back(word);
  }
  words.push_back(1 << 16 | 253);
  return words;
}

inline std::string shader(const std::string& kernel, std::uint32_t flags,
                          const std::vector<std::uint32_t>& words) {
  std::string out = text(kernel);
  put(out, flags);
  put<std::uint64_t>(out, words.size());
  for (const std::uint32_t word : words) put(out, word);
  return out;
}

// What follows the module's type key.
inline std::string opencl_module(const std::vector<TestKernel>& kernels, const std::string& source,
                                 const std::string& format = "cl") {
  return text(format) + table(kernels) + text(source);
}

inline std::string cuda_module(const std::vector<TestKernel>& kernels, const std::string& code,
                               const std::string& format) {
  return text(format) + table(kernels) + text(code);
}

inline std::string vulkan_module(const std::vector<TestKernel>& kernels,
                                 const std::vector<std::string>& shaders) {
  std::string out = text("vulkan") + table(kernels);
  put<std::uint64_t>(out, shaders.size());
  for (const std::string& one : shaders) out += one;
  return out;
}

// All of __tvm_dev_mblob: `modules` are type keys with their content.
inline std::string blob_of(const std::vector<std::string>& modules) {
  std::string content;
  put<std::uint64_t>(content, modules.size());
  for (const std::string& module : modules) content += module;
  std::string out;
  put<std::uint64_t>(out, content.size());
  return out + content;
}

}  // namespace run_model::testing_code
