// Masks of single things from prototypes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <run_model/postprocess.h>
#include "postprocess/detection/candidates.h"
#include "postprocess/map_places.h"
#include "postprocess/output_values.h"

namespace run_model {

class MaskMaker {
 public:
  // `rows`: how many boxes have a map of their own. Throws Error(kMismatch) unless the maps are as
  // many, or the prototypes as many as the masks say.
  MaskMaker(const InstanceMasks& masks, std::span<const NetworkOutput> outputs,
            const PreprocessReport& picture, std::size_t rows);

  // The pixels of the picture whose middles lie in the box and where the sum of the prototypes,
  // interpolated there, is above 0, which is a sigmoid above a half. Of maps of boxes: where that
  // of this row is above the threshold, wherever that is.
  InstanceMask make(const DecodedBox& decoded, const Box& in_picture, std::size_t row) const;

 private:
  // The part of the input within which a row's map may be above the threshold; nothing: nowhere.
  std::optional<Box> part_above(std::size_t row) const;
  double interpolated(const std::vector<float>& sums, const Place& x, const Place& y,
                      const Region& part) const;

  InstanceMasks masks_;
  OutputValues values_;
  const PreprocessReport& picture_;
  std::size_t width_ = 0, height_ = 0, pixel_step_ = 1, prototype_step_ = 1;
};

}  // namespace run_model
