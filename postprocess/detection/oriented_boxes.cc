#include "postprocess/detection/oriented_boxes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace run_model {
namespace {

using Point = std::array<double, 2>;

double cross(const Point& origin, const Point& a, const Point& b) {
  return (a[0] - origin[0]) * (b[1] - origin[1]) - (a[1] - origin[1]) * (b[0] - origin[0]);
}

// Positive where the corners follow each other clockwise on a picture.
template <typename Points>
double signed_area(const Points& points) {
  double twice = 0.0;
  for (std::size_t i = 2; i < points.size(); ++i) {
    twice += cross(points[0], points[i - 1], points[i]);
  }
  return twice / 2;
}

Point point_between(const Point& a, const Point& b, double share) {
  return {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share};
}

// The part of a convex polygon on the inner side of the line from `from` to `to` (Sutherland and
// Hodgman, 1974); `turn` is the sign of the clipping polygon's area.
std::vector<Point> clipped(const std::vector<Point>& polygon, const Point& from, const Point& to,
                           double turn) {
  std::vector<Point> result;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    const double side_a = turn * cross(from, to, a), side_b = turn * cross(from, to, b);
    if (side_a >= 0) result.push_back(a);
    if ((side_a > 0 && side_b < 0) || (side_a < 0 && side_b > 0)) {
      result.push_back(point_between(a, b, side_a / (side_a - side_b)));
    }
  }
  return result;
}

}  // namespace

double intersection_over_union(const Corners& a, const Corners& b) {
  const Box around_a = box_around(a), around_b = box_around(b);
  if (!(intersection_over_union(around_a, around_b) > 0)) return 0.0;
  const double area_a = signed_area(a), area_b = signed_area(b);
  std::vector<Point> common(a.begin(), a.end());
  for (std::size_t i = 0; i < b.size() && !common.empty(); ++i) {
    common = clipped(common, b[i], b[(i + 1) % b.size()], area_b < 0 ? -1.0 : 1.0);
  }
  const double shared = common.size() < 3 ? 0.0 : std::abs(signed_area(common));
  const double all = std::abs(area_a) + std::abs(area_b) - shared;
  return all > 0 ? shared / all : 0.0;
}

double side_angle(const Corners& corners) {
  constexpr double kDegrees = 180.0 / std::numbers::pi;
  return std::atan2(corners[1][1] - corners[0][1], corners[1][0] - corners[0][0]) * kDegrees;
}

Corners turned_corners(const Box& box, double angle) {
  const double x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  const double across = (box.right - box.left) / 2, down = (box.bottom - box.top) / 2;
  const double c = std::cos(angle), s = std::sin(angle);
  const auto corner = [&](double dx, double dy) {
    return Point{x + dx * c - dy * s, y + dx * s + dy * c};
  };
  return {corner(-across, -down), corner(across, -down), corner(across, down),
          corner(-across, down)};
}

Box box_around(const Corners& corners) {
  Box box{corners[0][0], corners[0][1], corners[0][0], corners[0][1]};
  for (const auto& [x, y] : corners) {
    box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x),
           std::max(box.bottom, y)};
  }
  return box;
}

NormalBox::NormalBox(const Box& box, double angle)
    : x((box.left + box.right) / 2), y((box.top + box.bottom) / 2) {
  const double width = box.right - box.left, height = box.bottom - box.top;
  // Variances of uniform distributions.
  const double along = width * width / 12, across = height * height / 12;
  const double c = std::cos(angle), s = std::sin(angle);
  xx = along * c * c + across * s * s;
  yy = along * s * s + across * c * c;
  xy = (along - across) * c * s;
}

double probabilistic_overlap(const NormalBox& a, const NormalBox& b) {
  constexpr double kSmall = 1e-7;
  const double xx = a.xx + b.xx, yy = a.yy + b.yy, xy = a.xy + b.xy;
  const double dx = a.x - b.x, dy = a.y - b.y;
  const double determinant = xx * yy - xy * xy;
  const double means = (xx * dy * dy + yy * dx * dx) / (determinant + kSmall) / 4 -
                       xy * dx * dy / (determinant + kSmall) / 2;
  const double of_a = std::max(a.xx * a.yy - a.xy * a.xy, 0.0);
  const double of_b = std::max(b.xx * b.yy - b.xy * b.xy, 0.0);
  const double covariances =
      std::log(determinant / (4 * std::sqrt(of_a * of_b) + kSmall) + kSmall) / 2;
  // Bhattacharyya's distance, and from it Hellinger's.
  const double distance = std::clamp(means + covariances, kSmall, 100.0);
  return 1 - std::sqrt(1 - std::exp(-distance) + kSmall);
}

}  // namespace run_model
