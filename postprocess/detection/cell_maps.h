// The cells of feature maps that follow each other, as the rows of a detector's outputs have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace run_model {

class CellMaps {
 public:
  struct Cell {
    std::size_t map = 0, row = 0, column = 0;
    std::size_t number = 0;  // of what the cell has several of
  };

  void add(std::size_t rows, std::size_t columns, std::size_t of_a_cell = 1) {
    maps_.push_back({size_, columns, of_a_cell});
    size_ += rows * columns * of_a_cell;
  }

  std::size_t size() const { return size_; }

  Cell at(std::size_t index) const {
    const auto after =
        std::upper_bound(maps_.begin(), maps_.end(), index,
                         [](std::size_t place, const Map& map) { return place < map.first; });
    const auto map = std::prev(after);
    const std::size_t place = index - map->first;
    const std::size_t cell = place / map->of_a_cell;
    return {static_cast<std::size_t>(map - maps_.begin()), cell / map->columns, cell % map->columns,
            place % map->of_a_cell};
  }

 private:
  struct Map {
    std::size_t first = 0, columns = 0, of_a_cell = 1;
  };

  std::vector<Map> maps_;
  std::size_t size_ = 0;
};

}  // namespace run_model
