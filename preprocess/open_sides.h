// Networks that leave the sides of the picture they take open.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/preprocessing.h>

namespace run_model {

// The input's shape where it sees pictures as `size` says, width and height: sides that are open
// are 1 until somebody sets them, and no picture should be made so small. Throws Error(kMismatch)
// where sides are open and there is no size, or it is not that of sides that are fixed.
std::vector<std::int64_t> shape_with_sides(const TensorInfo& input, Layout layout,
                                           const std::optional<std::array<int, 2>>& size);

// The length of the short side before an input is cut out whose longer side is `longer`, in the
// proportion that the crop of `preprocessing` has; without such a crop, that of `preprocessing`.
int resize_for_side(const Preprocessing& preprocessing, int longer);

}  // namespace run_model
