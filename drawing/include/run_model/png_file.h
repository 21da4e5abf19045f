// Pictures, masks and maps of numbers as PNG files.
#pragma once

#include <filesystem>

#include <run_model/image.h>
#include <run_model/task_result.h>

namespace run_model {

// All write atomically, so that a full disk leaves no half file. Throw Error(kFile), and
// write_png() Error(kImage) for an image without pixels.
void write_png(const std::filesystem::path& path, const Image& image);

// One grey value for each pixel: the class, 255 for what was not seen; of two classes 0 and 255,
// and 128 for what was not seen.
void write_mask_png(const std::filesystem::path& path, const SegmentationResult& segmentation);

// What the numbers of a file stand for: number = offset + step * stored; 0 was not seen.
struct MapCoding {
  double step = 1.0, offset = 0.0;
};

// One grey value of 16 bits for each pixel: of a depth in metres up to 65.535 whole millimetres,
// from 1 on; else 1 stands for the map's least number and 65535 for its largest.
MapCoding write_map_png(const std::filesystem::path& path, const MapTask& task,
                        const MapResult& map);

}  // namespace run_model
