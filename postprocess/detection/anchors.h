// Anchors from the options that generate them.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <run_model/task.h>
#include "postprocess/detection/cell_maps.h"

namespace run_model {

// The anchors of a source, in the order of the generator's own. Each is computed where it is asked
// for, since nearly none is: the scores decide first.
class AnchorGrid {
 public:
  struct Sides {
    double width = 0.0, height = 0.0;  // shares of the input's
  };

  // `source` has to stay. Throws Error(kMismatch) where there would be millions.
  AnchorGrid(const AnchorSource& source, double input_width, double input_height);

  std::size_t size() const { return list_ != nullptr ? list_->size() : cells_.size(); }
  Anchor at(std::size_t index) const;

 private:
  // Cells in rows, each of which has an anchor of all of the sides.
  struct Map {
    double offset_x = 0.5, offset_y = 0.5;  // of the centre, in cells
    double cells_x = 0.0, cells_y = 0.0;    // in the input's sides
    std::vector<Sides> sides;
  };

  void add_map(std::array<int, 2> rows_columns, Map map);
  void add_mediapipe(const MediapipeAnchors& options);
  void add_default_boxes(const TorchvisionAnchors& options);
  void add_pyramid(const PyramidAnchors& options, double input_width, double input_height);

  CellMaps cells_;
  std::vector<Map> maps_;
  const std::vector<Anchor>* list_ = nullptr;
};

}  // namespace run_model
