// From pixels to the numbers of a network's input.
#pragma once

#include <cstdint>
#include <span>

#include <run_model/preprocessing.h>

namespace run_model {

struct InputSize {
  int width = 0;
  int height = 0;
};

// The sides of the picture that a tensor of `shape` takes. Throws Error(kMismatch) unless the shape
// has the axes of `layout`, one picture of so many channels, and is within the limits of image.h.
InputSize picture_input_size(std::span<const std::int64_t> shape, Layout layout, int channels);

// Writes every pixel of `image` to `input`, which has its size, by the formula of Preprocessing.
// The 256 possible results of a channel are computed once, so they are those of the formula bit for
// bit. Throws Error(kMismatch) when the element type is none of float32, float16, uint8, int8.
void write_tensor(const Image& image, const Preprocessing& preprocessing, Layout layout,
                  const Tensor& input);

}  // namespace run_model
