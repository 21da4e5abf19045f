// NumPy's .npz archives: named arrays in a zip file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <run_model/tensor.h>

namespace run_model {

struct NamedTensor {
  std::string name;  // without the ".npy" that the archive's member has
  Tensor tensor;
};

// Reads what numpy.savez and numpy.savez_compressed write, in the archive's order. Throws
// Error(kFile) when the file cannot be read, Error(kFormat) when it is damaged or not such an
// archive.
std::vector<NamedTensor> read_npz(const std::filesystem::path& path);

// Writes atomically and without compression; the same tensors give the same bytes. Throws
// Error(kFile), and Error(kMismatch) for an element type that NumPy does not have, an empty tensor
// or two tensors of one name.
void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace run_model
