// Where the kernels are in code as TVM's generators write it, as far as it can be told without a
// driver.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// A program of its own in the OpenCL C of a module: TVM writes "// Function: NAME" in front of
// each. `text` begins with that line and ends before the next one's.
struct OpenClPiece {
  std::string_view kernel;
  std::string_view text;
};

// In the order of the text; what comes before the first belongs to none.
std::vector<OpenClPiece> split_opencl(std::string_view source);

// What a string of CUDA code is, by its first bytes: "ptx", "cubin", "fatbin", or "" for neither.
std::string_view cuda_format(std::string_view code);

// Whether a kernel is in PTX or in a cubin.
bool has_ptx_entry(std::string_view ptx, std::string_view kernel);
bool has_cubin_entry(std::string_view cubin, std::string_view kernel);

// What is wrong with SPIR-V that should have the compute shader `kernel`, or "" for nothing: its
// header, that its instructions follow each other to the end, and its entry point. The driver takes
// the rest as it is.
std::string spirv_problem(std::span<const std::uint32_t> words, std::string_view kernel);

}  // namespace run_model
