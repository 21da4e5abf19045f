// Masks, from the network's map to every pixel of the picture.
#pragma once

#include <span>

#include <run_model/postprocess.h>

namespace run_model {

// Throws as postprocess() does.
SegmentationResult segment(const SegmentationTask& task, std::size_t labels,
                           std::span<const NetworkOutput> outputs, const PreprocessReport& picture);

}  // namespace run_model
