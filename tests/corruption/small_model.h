// The files of a model with two parameters: output_0 = reshape(x * w), output_1 = x * w + b.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/temporary_folder.h"

namespace run_model::corruption {

using Floats = std::array<float, 4>;

inline constexpr Floats kX{1, -2, 3, 0.5f};
inline constexpr Floats kW{2, 3, -1, 8};
inline constexpr Floats kB{10, 20, 30, 40};

nlohmann::json small_graph();

// With padding between the parameters, as compile_model writes them.
std::string small_params();

std::string small_library();

// metadata.json; lists sizes and checksums of the three files if `with_checksums`.
nlohmann::json small_metadata(bool with_checksums);

// The blob that a single-file export of this model has inside the library.
std::string small_device_blob();

}  // namespace run_model::corruption
