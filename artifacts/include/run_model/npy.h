// NumPy's .npy files: one dense array.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <run_model/tensor.h>

namespace run_model {

// Reads format versions 1 to 3. Accepted are little-endian bool, int8 … int64, uint8 … uint64,
// float16, float32 and float64, and '<V2', as ml_dtypes writes bfloat16; an array in Fortran order
// is put into row-major order. Throws Error(kFile) when the file cannot be read, Error(kFormat)
// when it is anything else.
Tensor read_npy(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name);

// Writes atomically, format version 1, row-major; bfloat16 as ml_dtypes does, which NumPy alone
// reads as pairs of bytes. Throws Error(kFile), and Error(kMismatch) for an element type that
// neither has (vectors, sub-byte integers) or an empty tensor.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

// What precedes the array's bytes in a .npy file: magic, version and description, padded to a
// multiple of 64 bytes. Throws Error(kMismatch) as write_npy does.
std::string npy_header(const Tensor& tensor);

}  // namespace run_model
