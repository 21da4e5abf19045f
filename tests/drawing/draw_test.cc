#include <run_model/draw.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include <run_model/decode.h>
#include <run_model/png_file.h>
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

Image grey_image(int width, int height) {
  Image image(width, height);
  std::fill_n(image.data(), image.byte_count(), std::uint8_t{100});
  return image;
}

bool is_color(const Image& image, int x, int y, Color color) {
  const std::uint8_t* pixel = image.row(y) + static_cast<std::ptrdiff_t>(x) * 3;
  return pixel[0] == color.red && pixel[1] == color.green && pixel[2] == color.blue;
}

Task task(const std::string& text) { return parse_tasks(text, "task").at(0); }

const char* const kBoxes = R"({"kind": "detection", "form": "box-rows", "output": 0,
  "box_format": "xyxy", "units": "pixels", "score_threshold": 0.5})";
const char* const kMask = R"({"kind": "segmentation", "form": "mask", "output": 0,
  "activation": "none"})";

Detection at(const Box& box) { return {box, 1, "caf\xC3\xA9", 0.5, {}}; }

TEST(DrawTest, FramesBoxesAndWritesAboveThem) {
  Image image = grey_image(200, 200);
  draw_result(image, task(kBoxes), DetectionResult{{at({50, 60, 150, 160})}});
  const Color color = class_color(1);
  EXPECT_TRUE(is_color(image, 100, 60, color));
  EXPECT_TRUE(is_color(image, 50, 100, color));
  EXPECT_TRUE(is_color(image, 150, 160, color));
  EXPECT_TRUE(is_color(image, 100, 100, {100, 100, 100}));
  EXPECT_TRUE(is_color(image, 51, 51, color));
  int ink = 0;
  for (int y = 49; y < 60; ++y) {
    for (int x = 50; x < 100; ++x) ink += is_color(image, x, y, {0, 0, 0}) ? 1 : 0;
  }
  EXPECT_GT(ink, 50);
}

TEST(DrawTest, BoxesWithAnAngleAreDrawnAsTheyAreTurned) {
  Image image = grey_image(200, 200);
  Detection found = at({50, 50, 150, 150});
  found.corners = {{{100, 50}, {150, 100}, {100, 150}, {50, 100}}};
  draw_result(image, task(kBoxes), DetectionResult{{found}});
  const Color color = class_color(1);
  for (const auto& [x, y] : {std::pair{125, 75}, {125, 125}, {75, 125}, {100, 149}}) {
    EXPECT_TRUE(is_color(image, x, y, color)) << x << " " << y;
  }
  EXPECT_TRUE(is_color(image, 149, 149, {100, 100, 100}));
}

// What lies beyond the picture, however far, is left out.
TEST(DrawTest, DrawsWithinThePicture) {
  for (const double far : {10.0, 1e9, 1e300}) {
    for (const int side : {1, 7, 64}) {
      Image image = grey_image(side, side);
      DetectionResult result{{at({-far, -far, far, far}), at({far, far, 2 * far, 2 * far})}};
      result.detections[0].keypoints = {{far, -far, 0.5}, {side / 2.0, far, std::nullopt}};
      draw_result(image, task(kBoxes), result);
      const Task lines = task(R"({"kind": "landmarks", "output": 0, "columns": ["x", "y"],
        "units": "pixels", "connections": [[0, 1], [1, 2]]})");
      LandmarksResult points;
      points.points = {{-far, -far}, {far, far}, {0, -far}};
      draw_result(image, lines, points);
    }
  }
}

TEST(DrawTest, BlendsMasksButForTheBackground) {
  Image image = grey_image(3, 1);
  draw_result(image, task(kMask), SegmentationResult{3, 1, {0, 1, 255}, 2});
  const Color color = class_color(1);
  EXPECT_TRUE(is_color(image, 0, 0, {100, 100, 100}));
  EXPECT_TRUE(is_color(image, 1, 0,
                       {static_cast<unsigned char>((100 + color.red) / 2),
                        static_cast<unsigned char>((100 + color.green) / 2),
                        static_cast<unsigned char>((100 + color.blue) / 2)}));
  EXPECT_TRUE(is_color(image, 2, 0, {100, 100, 100}));
  EXPECT_TRUE(
      throws_error([&] { draw_result(image, task(kMask), SegmentationResult{2, 1, {0, 1}, 2}); },
                   ErrorKind::kMismatch, "not of the picture"));
}

TEST(DrawTest, WritesPngFiles) {
  const TemporaryFolder folder;
  Image image = grey_image(30, 20);
  for (std::size_t i = 0; i < image.byte_count(); ++i) {
    image.data()[i] = static_cast<std::uint8_t>(i * i);
  }
  const std::filesystem::path path = folder.path() / "drawn.png";
  write_png(path, image);
  const Picture read = load_picture(path.string());
  ASSERT_EQ(read.image.byte_count(), image.byte_count());
  EXPECT_TRUE(std::equal(image.data(), image.data() + image.byte_count(), read.image.data()));

  write_mask_png(path, SegmentationResult{3, 1, {0, 1, 255}, 2});
  const Picture mask = load_picture(path.string());
  EXPECT_EQ(mask.channels, 1);
  EXPECT_TRUE(is_color(mask.image, 1, 0, {255, 255, 255}));
  EXPECT_TRUE(is_color(mask.image, 2, 0, {128, 128, 128}));
  EXPECT_TRUE(
      throws_error([&] { write_png("/dev/full", image); }, ErrorKind::kFile, "free some space"));
}

}  // namespace
}  // namespace run_model
