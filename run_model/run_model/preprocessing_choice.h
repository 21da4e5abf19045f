// Which preprocessing a picture gets: flags before the artifact's metadata before defaults.
#pragma once

#include <cstdint>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/metadata.h>
#include <run_model/preprocessing.h>
#include "run_model/run_model/settings.h"

namespace run_model {

struct PreprocessingChoice {
  Preprocessing preprocessing;
  Layout layout = Layout::kNchw;
  std::vector<std::int64_t> shape;  // of the input, with the sides that --size gives it
};

// The choice for the network input `input`. `metadata` may be null. --normalize and --no-normalize
// replace the metadata's scale, mean and deviation as a whole; a colour order other than the
// metadata's takes the metadata's mean and deviation along, colour by colour. Without metadata the
// resizer is pil-bilinear, the fit a centre crop after resizing as for 256 to 224, the order RGB.
// Throws Error(kUsage) where nothing says how pixels are scaled or the layout is ambiguous, and
// where flags contradict each other; Error(kMismatch) when the input does not take pictures, or
// leaves their sides open and --size is not there.
PreprocessingChoice choose_preprocessing(const PreprocessingFlags& flags, const Metadata* metadata,
                                         const TensorInfo& input);

}  // namespace run_model
