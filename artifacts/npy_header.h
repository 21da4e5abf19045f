// The description at the start of a .npy file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <run_model/dtype.h>

namespace run_model {

struct NpyHeader {
  DLDataType dtype{};
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  // from the start of the file
};

// Throws Error(kFormat) naming `name`.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name);

// NumPy's name of an element type, such as "<f4". Throws Error(kMismatch) where NumPy has none.
std::string npy_descr(DLDataType dtype);

}  // namespace run_model
