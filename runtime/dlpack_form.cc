#include "runtime/dlpack_form.h"

#include <algorithm>

#include <run_model/dtype.h>
#include <run_model/error.h>

namespace run_model {
namespace {

bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr || std::count(tensor.shape, tensor.shape + tensor.ndim, 0) != 0) {
    return true;  // of no elements any strides are right
  }
  std::int64_t expected = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    // The stride of a dimension of one element is never used.
    if (tensor.shape[i] > 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> dense_shape(const DLTensor& tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    throw Error(ErrorKind::kMismatch, "a DLPack tensor without a shape was given");
  }
  std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  tensor_bytes(shape, tensor.dtype);
  if (!is_dense(tensor)) {
    throw Error(ErrorKind::kMismatch, "a strided tensor was given, expected a dense row-major one",
                "make it contiguous first");
  }
  return shape;
}

}  // namespace run_model
