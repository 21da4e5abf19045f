// Tensors that others describe, as DLPack has them.
#pragma once

#include <cstdint>
#include <vector>

#include <dlpack/dlpack.h>

namespace run_model {

// The shape of a tensor whose elements lie densely in row-major order. Throws Error(kMismatch) for
// any other, and for a shape or a type that no tensor has.
std::vector<std::int64_t> dense_shape(const DLTensor& tensor);

}  // namespace run_model
