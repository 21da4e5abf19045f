// From the network's input to the picture, and there again.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include <run_model/preprocessing.h>
#include <run_model/task_result.h>

namespace run_model {

class WayBack {
 public:
  using Point = std::array<double, 2>;  // x, y

  explicit WayBack(const PreprocessReport& picture) : picture_(picture) {
    if (!picture.region || picture.region->angle == 0.0) return;
    constexpr double kHalfTurn = std::numbers::pi;
    const PictureRegion& region = *picture.region;
    turned_ = true;
    cos_ = std::cos(region.angle * kHalfTurn / 180.0);
    sin_ = std::sin(region.angle * kHalfTurn / 180.0);
    centre_ = {region.x + region.width / 2, region.y + region.height / 2};
  }

  bool turned() const { return turned_; }

  Point to_picture(double x, double y) const {
    const Point upright{(x - picture_.offset_x) / picture_.scale_x,
                        (y - picture_.offset_y) / picture_.scale_y};
    return turned_ ? turn(upright, sin_) : upright;
  }

  Point to_input(double x, double y) const {
    const Point upright = turned_ ? turn({x, y}, -sin_) : Point{x, y};
    return {upright[0] * picture_.scale_x + picture_.offset_x,
            upright[1] * picture_.scale_y + picture_.offset_y};
  }

  // Of a turned region the upright box around the turned one.
  Box box(const Box& box) const {
    const Point first = to_picture(box.left, box.top);
    const Point last = to_picture(box.right, box.bottom);
    if (!turned_) return {first[0], first[1], last[0], last[1]};
    const Point second = to_picture(box.right, box.top);
    const Point third = to_picture(box.left, box.bottom);
    const auto [left, right] = std::minmax({first[0], second[0], third[0], last[0]});
    const auto [top, bottom] = std::minmax({first[1], second[1], third[1], last[1]});
    return {left, top, right, bottom};
  }

 private:
  Point turn(const Point& point, double sine) const {
    const double x = point[0] - centre_[0], y = point[1] - centre_[1];
    return {centre_[0] + x * cos_ - y * sine, centre_[1] + x * sine + y * cos_};
  }

  const PreprocessReport& picture_;
  bool turned_ = false;
  double cos_ = 1.0, sin_ = 0.0;
  Point centre_{};
};

}  // namespace run_model
