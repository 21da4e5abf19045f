// The kinds of tasks that have files of their own. All throw as postprocess() does.
#pragma once

#include <cstddef>
#include <span>

#include <run_model/postprocess.h>

namespace run_model {

// Masks, from the network's map to every pixel of the picture.
SegmentationResult segment(const SegmentationTask& task, std::size_t labels,
                           std::span<const NetworkOutput> outputs, const PreprocessReport& picture);

// One number for each pixel of the picture.
MapResult fill_map(const MapTask& task, std::span<const NetworkOutput> outputs,
                   const PreprocessReport& picture);

// What a network makes of a picture.
ImageResult make_image(const ImageTask& task, std::span<const NetworkOutput> outputs,
                       const PreprocessReport& picture);

// Points as numbers or as maps.
LandmarksResult find_landmarks(const Task& whole, const LandmarksTask& task,
                               std::span<const NetworkOutput> outputs,
                               const PreprocessReport& picture);

}  // namespace run_model
