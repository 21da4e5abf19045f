// Writes parameter files for the tests, with code of its own rather than a copy of a reader's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dlpack/dlpack.h>

#include <run_model/tensor.h>

namespace run_model::testing_params {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A tensor as parameter files hold it, magic number first.
inline std::string tensor_record(const std::vector<std::int64_t>& shape, DLDataType dtype,
                                 const std::string& data) {
  std::string out;
  put<std::uint64_t>(out, 0xDD5E40F096B4A13F);
  put<std::uint64_t>(out, 0);
  put<std::int32_t>(out, kDLCPU);
  put<std::int32_t>(out, 0);
  put<std::int32_t>(out, static_cast<std::int32_t>(shape.size()));
  put(out, dtype);
  for (std::int64_t dimension : shape) put(out, dimension);
  put<std::int64_t>(out, static_cast<std::int64_t>(data.size()));
  return out + data;
}

using NamedRecords = std::vector<std::pair<std::string, std::string>>;

inline std::string params_bytes(const NamedRecords& named_records) {
  std::string out;
  put<std::uint64_t>(out, 0xF7E58D4F05049CB7);
  put<std::uint64_t>(out, 0);
  put<std::uint64_t>(out, named_records.size());
  for (const auto& [name, record] : named_records) {
    put<std::uint64_t>(out, name.size());
    out += name;
  }
  put<std::uint64_t>(out, named_records.size());
  for (const auto& [name, record] : named_records) out += record;
  return out;
}

// One-dimensional float32 parameters; `aligned` puts the last one's data at a multiple of
// kTensorAlignment, else it is moved off one.
inline std::string float_params(
    const std::vector<std::pair<std::string, std::vector<float>>>& params, bool aligned) {
  for (std::size_t padding = 0;; ++padding) {
    NamedRecords records{{"__align", tensor_record({static_cast<std::int64_t>(padding)},
                                                   {kDLUInt, 8, 1}, std::string(padding, '\0'))}};
    std::size_t last_bytes = 0;
    for (const auto& [name, values] : params) {
      last_bytes = values.size() * sizeof(float);
      records.emplace_back(
          name,
          tensor_record({static_cast<std::int64_t>(values.size())}, {kDLFloat, 32, 1},
                        std::string(reinterpret_cast<const char*>(values.data()), last_bytes)));
    }
    std::string bytes = params_bytes(records);
    if (((bytes.size() - last_bytes) % kTensorAlignment == 0) == aligned) return bytes;
  }
}

}  // namespace run_model::testing_params
