// Pictures and masks as PNG files.
#pragma once

#include <filesystem>

#include <run_model/image.h>
#include <run_model/task_result.h>

namespace run_model {

// Both write atomically, so that a full disk leaves no half file. Throw Error(kFile).
void write_png(const std::filesystem::path& path, const Image& image);

// One grey value for each pixel: the class, 255 for what was not seen; of two classes 0 and 255,
// and 128 for what was not seen.
void write_mask_png(const std::filesystem::path& path, const SegmentationResult& segmentation);

}  // namespace run_model
