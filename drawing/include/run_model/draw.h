// What was found, drawn on the picture.
#pragma once

#include <span>

#include <run_model/image.h>
#include <run_model/task.h>
#include <run_model/task_result.h>

namespace run_model {

// Boxes, as they are turned, with class and score, keypoints, masks blended in the colours of a
// fixed palette, landmarks with the lines between them. Of a mask or of several classes, class 0
// stays as it is where it is the background: of a mask always, else where the first label says so
// ("background", "_background_", "__background__", "unlabeled"). The most likely class of a
// classification is written into the left top corner. A map of numbers covers the picture in the
// colours of Matplotlib's "inferno", what is near or large in the light ones, between
// the numbers that one of a hundred pixels are below and above; an image takes the picture's place,
// but where an image of the picture's pixels has not seen it. Nothing is drawn for an embedding.
// `image` has to be the picture that the result is of. Throws Error(kMismatch) where it is not.
void draw_result(Image& image, const Task& task, const TaskResult& result);

// All results of a picture, each of the task at its place: areas, maps and images lie below boxes
// and points, whatever the tasks' order is.
void draw_results(Image& image, std::span<const Task> tasks, std::span<const TaskResult> results);

struct Color {
  unsigned char red = 0, green = 0, blue = 0;
};

// The palette's colour of a class.
Color class_color(std::size_t index);

}  // namespace run_model
