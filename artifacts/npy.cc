#include <run_model/npy.h>

#include <algorithm>
#include <cstring>

#include <run_model/error.h>
#include "artifacts/npy_header.h"
#include "base/file.h"
#include "base/text.h"
#include "base/write_file.h"

namespace run_model {
namespace {

constexpr std::size_t kHeaderAlignment = 64;

// Copies an array whose first index varies fastest to one whose last index does.
void copy_from_fortran_order(const std::byte* source, const Tensor& target) {
  const std::vector<std::int64_t>& shape = target.shape();
  const std::size_t item = dtype_bytes(target.dtype());
  std::vector<std::size_t> stride(shape.size());
  std::size_t elements = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = elements;
    elements *= static_cast<std::size_t>(shape[axis]);
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  auto* out = static_cast<std::byte*>(target.data());
  for (std::size_t i = 0; i < elements; ++i, out += item) {
    std::size_t from = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      from += static_cast<std::size_t>(index[axis]) * stride[axis];
    }
    std::memcpy(out, source + from * item, item);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  const NpyHeader header = parse_npy_header(bytes, name);
  const std::span<const std::byte> data = bytes.subspan(header.data_offset);
  const std::string claim = tensor_form_name(header.dtype, header.shape);
  std::size_t wanted = 0;
  try {
    wanted = tensor_bytes(header.shape, header.dtype);
  } catch (const Error&) {
    throw Error(ErrorKind::kFormat, name + " claims the impossible shape " + claim);
  }
  // The data is already in memory, so this bounds the allocation below.
  if (data.size() != wanted) {
    throw Error(ErrorKind::kFormat,
                name + " holds " + std::to_string(data.size()) + " bytes of data, but " + claim +
                    " needs " + std::to_string(wanted),
                "the file is truncated or damaged");
  }

  Tensor tensor = Tensor::empty(header.shape, header.dtype);
  if (header.fortran_order && header.shape.size() > 1) {
    copy_from_fortran_order(data.data(), tensor);
  } else if (wanted > 0) {
    std::memcpy(tensor.data(), data.data(), wanted);
  }
  return tensor;
}

Tensor read_npy(const std::filesystem::path& path) {
  return parse_npy(read_file(path, kMaxArrayFileBytes, "a NumPy file"), path_in_quotes(path));
}

std::string npy_header(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dimension : tensor.shape()) {
    shape += std::to_string(dimension) + ", ";
  }
  // Python writes a tuple of one as "(5,)" and longer ones without the last comma.
  if (tensor.shape().size() == 1) shape.pop_back();
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  std::string description = "{'descr': '" + npy_descr(tensor.dtype()) +
                            "', 'fortran_order': False, 'shape': (" + shape + "), }";

  const std::size_t prefix = 10;
  const std::size_t unpadded = prefix + description.size() + 1;
  description.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  description += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(description.size() & 0xFF);
  header += static_cast<char>(description.size() >> 8);
  return header + description;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor);
  const std::span data(static_cast<const std::byte*>(tensor.data()), tensor.nbytes());
  write_file(path, {std::as_bytes(std::span(header)), data});
}

}  // namespace run_model
