// Pillow's Image.resize(size, BILINEAR or BICUBIC) on 8-bit RGB: a separable filter whose support
// grows with the reduction (antialiasing), in fixed point of 22 fractional bits, rows first, with
// the result rounded to 8 bits between the two passes.
//
// Equal to Pillow 11.3.0 on x86-64. The filter's weights are computed in double precision without
// fused multiply-add and all else in integers, so every CPU gives the same bytes; Pillow's own
// builds for CPUs where the compiler fuses may differ from its x86-64 build in rare last bits.
#pragma once

#include <run_model/image.h>

namespace run_model {

enum class PilFilter { kBilinear, kBicubic };

// The part `window` of `image` resized to width x height. The window must lie inside.
Image resize_pil(const Image& image, int width, int height, PilFilter filter, const Region& window);

}  // namespace run_model
