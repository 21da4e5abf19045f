// What was found, drawn on the picture.
#pragma once

#include <run_model/image.h>
#include <run_model/task.h>
#include <run_model/task_result.h>

namespace run_model {

// Boxes, as they are turned, with class and score, keypoints, masks blended in the colours of a
// fixed palette, landmarks with the lines between them. Of a mask or of several classes, class 0
// stays as it is where it is the background: of a mask always, else where the first label says so
// ("background", "_background_", "__background__", "unlabeled"). The most likely class of a
// classification is written into the left top corner. Nothing is drawn for an embedding. `image`
// has to be the picture that the result is of.
void draw_result(Image& image, const Task& task, const TaskResult& result);

struct Color {
  unsigned char red = 0, green = 0, blue = 0;
};

// The palette's colour of a class.
Color class_color(std::size_t index);

}  // namespace run_model
