// Boxes that are turned about their middles.
#pragma once

#include <run_model/task_result.h>

namespace run_model {

// Of a box that is turned clockwise by `angle` radians.
Corners turned_corners(const Box& box, double angle);

// The least upright box that holds all corners.
Box box_around(const Corners& corners);

// A turned box as the normal distribution with the mean and the covariance of its points.
struct NormalBox {
  double x = 0.0, y = 0.0;              // mean
  double xx = 0.0, yy = 0.0, xy = 0.0;  // covariance

  NormalBox(const Box& box, double angle);
};

// One minus the Hellinger distance of the two (Llerena et al., "Gaussian Bounding Boxes and
// Probabilistic Intersection-over-Union", 2021), with the small numbers that Ultralytics'
// batch_probiou adds. Not 1 where both are the same, and not quite 0 anywhere.
double probabilistic_overlap(const NormalBox& a, const NormalBox& b);

}  // namespace run_model
