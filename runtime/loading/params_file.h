// TVM's parameter files: names and tensors, little-endian.
// Format read from TVM's file_utils.cc and ndarray.h (v0.18.0); unchanged since 0.6:
//   u64 0xF7E58D4F05049CB7, u64 reserved, u64 n, n × (u64 length, name), u64 n, n × tensor
//   tensor: u64 0xDD5E40F096B4A13F, u64 reserved, i32 device type, i32 device id, i32 ndim,
//           u8 type code, u8 bits, u16 lanes, ndim × i64 dimension, i64 data bytes, data
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <run_model/dtype.h>
#include "base/byte_reader.h"

namespace run_model {

inline constexpr std::uint64_t kParamsMagic = 0xF7E58D4F05049CB7;

// Tensors whose name starts so are padding between parameters, which puts the data of the real ones
// at aligned offsets of the file. TVM's own runtimes skip names that the graph does not have.
inline constexpr std::string_view kPaddingPrefix = "__align";

struct Param {
  std::string name;
  std::vector<std::int64_t> shape;
  DLDataType dtype{};
  std::span<const std::byte> data;  // points into the parsed bytes; at no particular alignment
};

// Parses a parameter file without its padding. `source` names the bytes in errors. Throws
// Error(kFormat) for anything but exactly one well-formed list of differently named CPU tensors.
std::vector<Param> parse_params(std::span<const std::byte> bytes, const std::string& source);

// Reads the tensors of these names from where `reader` stands, as parse_params does: a single-file
// library holds its parameters in this form. Their data points into the reader's bytes.
std::vector<Param> read_tensors(ByteReader& reader, std::span<const std::string> names);

// Reads one tensor in this form. `bool_is_a_type`, where it is given, allows for the bool of TVM
// 0.22 and later (kFfiBoolType) too, which is read as run_model's, and is set to true by one.
Param read_tensor(ByteReader& reader, const std::string& name, bool* bool_is_a_type = nullptr);

}  // namespace run_model
