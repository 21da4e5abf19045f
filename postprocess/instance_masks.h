// Masks of single things from prototypes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <run_model/postprocess.h>
#include "postprocess/candidates.h"
#include "postprocess/map_places.h"
#include "postprocess/output_values.h"

namespace run_model {

class MaskMaker {
 public:
  // Throws Error(kMismatch) unless the prototypes are as many as the masks say.
  MaskMaker(const InstanceMasks& masks, std::span<const NetworkOutput> outputs,
            const PreprocessReport& picture);

  // The pixels of the picture whose middles lie in the box and where the sum of the prototypes,
  // interpolated there, is above 0, which is a sigmoid above a half.
  InstanceMask make(const DecodedBox& decoded, const Box& in_picture) const;

 private:
  double interpolated(const std::vector<float>& sums, const Place& x, const Place& y,
                      const Region& part) const;

  OutputValues values_;
  const PreprocessReport& picture_;
  std::size_t width_ = 0, height_ = 0, pixel_step_ = 1, prototype_step_ = 1;
};

}  // namespace run_model
