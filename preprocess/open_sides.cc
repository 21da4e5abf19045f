#include "preprocess/open_sides.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {

std::vector<std::int64_t> shape_with_sides(const TensorInfo& input, Layout layout,
                                           const std::optional<std::array<int, 2>>& size) {
  const std::string_view axes = layout_name(layout);
  std::vector<std::int64_t> shape = input.shape;
  for (std::size_t i = 0; i < std::min(shape.size(), axes.size()); ++i) {
    const bool tall = axes[i] == 'H';
    if (!tall && axes[i] != 'W') continue;
    const char* const side = tall ? "height" : "width";
    const bool open = i < input.symbols.size() && !input.symbols[i].empty();
    if (open && !size) {
      throw Error(ErrorKind::kMismatch,
                  "the model leaves the sides of its pictures open: its input " +
                      in_quotes(input.name) + " has any " + side,
                  "say how large it is to see them, as --size 640x480 does");
    }
    if (!size) continue;
    const int asked = (*size)[tall ? 1 : 0];
    if (open ? asked < 1 : asked != shape[i]) {
      throw Error(ErrorKind::kMismatch,
                  "the size has a " + std::string(side) + " of " + std::to_string(asked) +
                      ", and the model's input " + in_quotes(input.name) +
                      (open ? " needs one of 1 or more" : " one of " + std::to_string(shape[i])),
                  open ? "" : "give no size, or compile the model with --dynamic");
    }
    shape[i] = asked;
  }
  return shape;
}

int resize_for_side(const Preprocessing& preprocessing, int longer) {
  if (preprocessing.crop == 0) return preprocessing.resize;
  return static_cast<int>(std::int64_t{preprocessing.resize} * longer / preprocessing.crop);
}

}  // namespace run_model
