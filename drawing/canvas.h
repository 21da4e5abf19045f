// Shapes on a picture; what lies outside of it is left out.
#pragma once

#include <string_view>

#include <run_model/draw.h>
#include <run_model/image.h>
#include <run_model/task_result.h>

namespace run_model {

class Canvas {
 public:
  explicit Canvas(Image& image);

  // Widths of lines, and dots of letters, grow with the picture.
  int line_width() const { return line_width_; }
  int text_height() const;
  int text_width(std::string_view text) const;

  // Half of the colour, half of what is there.
  void blend(int x, int y, Color color);
  void fill(double left, double top, double right, double bottom, Color color);
  void frame(double left, double top, double right, double bottom, Color color);
  void line(double x0, double y0, double x1, double y1, Color color);
  void outline(const Corners& corners, Color color);
  void dot(double x, double y, double radius, Color color);

  // On a bar of the colour, in black or white; moved to lie within the picture.
  void label(double left, double bottom, std::string_view text, Color color);

 private:
  Image& image_;
  int line_width_;
  int letter_dot_;  // pixels
};

}  // namespace run_model
