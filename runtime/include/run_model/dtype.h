// Element types, written the way TVM writes them: "float32", "int8", "bool", "float16",
// "float32x4".
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace run_model {

// Parses TVM's spelling of an element type. "bool" is an unsigned integer of one bit, stored in one
// byte, as in TVM up to 0.19. Throws Error(kFormat) naming `text` when it is none.
DLDataType parse_dtype(std::string_view text);

// The inverse of parse_dtype.
std::string dtype_name(DLDataType dtype);

// Bytes of one element (all lanes), at least 1: bool and other sub-byte types take whole bytes.
std::size_t dtype_bytes(DLDataType dtype);

bool same_dtype(DLDataType a, DLDataType b);

// Product of the dimensions; 1 for a scalar (no dimensions). Throws Error(kFormat) when a dimension
// is negative or the product does not fit in 63 bits.
std::int64_t element_count(std::span<const std::int64_t> shape);

// Bytes of a dense tensor. Throws Error(kFormat) on overflow, as element_count does.
std::size_t tensor_bytes(std::span<const std::int64_t> shape, DLDataType dtype);

// "[1, 3, 224, 224]"
std::string shape_name(std::span<const std::int64_t> shape);

// "float32 [1, 3, 224, 224]"
std::string tensor_form_name(DLDataType dtype, std::span<const std::int64_t> shape);

}  // namespace run_model
