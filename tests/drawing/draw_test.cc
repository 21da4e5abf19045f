#include <run_model/draw.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <run_model/decode.h>
#include <run_model/png_file.h>
#include "base/file.h"
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
  EXPECT_TRUE(throws_error([&] { write_png(path, Image()); }, ErrorKind::kImage, "no pixels"));
}

const char* const kDepth = R"({"kind": "map", "output": 0, "quantity": "depth", "unit": "m"})";
const char* const kOtherMap = R"({"kind": "map", "output": 0, "quantity": "other"})";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Matplotlib's inferno at 0, 50, 128, 200 and 255.
TEST(DrawTest, MapsHaveInfernosColoursAndWhatIsNearIsLight) {
  MapResult map{256, 1, std::vector<float>(256)};
  for (std::size_t i = 0; i < 256; ++i) map.values[i] = static_cast<float>(i) * 1.02F - 2.601F;
  // So that the hundredth parts at both ends are as they would be.
  Image image = grey_image(256, 1);
  draw_result(image, task(kOtherMap), map);
  constexpr unsigned char kExpected[][4]{{50, 64, 10, 103}, {128, 188, 55, 84}, {200, 251, 157, 7}};
  for (const auto& [x, red, green, blue] : kExpected) {
    const std::uint8_t* pixel = image.row(0) + std::ptrdiff_t{x} * 3;
    EXPECT_NEAR(pixel[0], red, 4) << int{x};
    EXPECT_NEAR(pixel[1], green, 4) << int{x};
    EXPECT_NEAR(pixel[2], blue, 4) << int{x};
  }
  EXPECT_TRUE(is_color(image, 0, 0, {0, 0, 4}));
  EXPECT_TRUE(is_color(image, 255, 0, {252, 255, 164}));
  draw_result(image, task(kDepth), map);
  EXPECT_TRUE(is_color(image, 0, 0, {252, 255, 164}));
  map.values.assign(256, kNan);
  map.values[0] = 1;
  draw_result(image = grey_image(256, 1), task(kDepth), map);
  EXPECT_TRUE(is_color(image, 1, 0, {100, 100, 100}));
  EXPECT_FALSE(is_color(image, 0, 0, {100, 100, 100}));
  Image other = grey_image(2, 1);
  EXPECT_TRUE(throws_error([&] { draw_result(other, task(kDepth), map); }, ErrorKind::kMismatch,
                           "the map is not of the picture"));
}

TEST(DrawTest, AnImageTakesThePicturesPlaceWhereItWasSeen) {
  const Task what = task(R"({"kind": "image", "output": 0, "layout": "NCHW",
    "color_order": "RGB", "range": [0, 1]})");
  ImageResult result{2, 1, {1, 2, 3, 4, 5, 6}, {0, 1}};
  Image image = grey_image(2, 1);
  draw_result(image, what, result);
  EXPECT_TRUE(is_color(image, 0, 0, {100, 100, 100}));
  EXPECT_TRUE(is_color(image, 1, 0, {4, 5, 6}));
  Image smaller = grey_image(1, 1);
  EXPECT_TRUE(throws_error([&] { draw_result(smaller, what, result); }, ErrorKind::kMismatch,
                           "the image is not of the picture"));
  result.seen.clear();
  draw_result(smaller, what, result);
  ASSERT_EQ(smaller.width(), 2);
  EXPECT_TRUE(is_color(smaller, 0, 0, {1, 2, 3}));
}

// One row, of which each byte but the first is a difference from the one two before it.
std::vector<unsigned> stored_row(const std::filesystem::path& file, std::size_t width) {
  const std::vector<std::byte> bytes = read_file(file, 1 << 20, "a map");
  constexpr std::size_t kData =
      8 + 25 + 8;  // behind the signature, the header, a length and a name
  std::vector<unsigned char> row(1 + 2 * width);
  uLongf length = row.size();
  EXPECT_EQ(uncompress(row.data(), &length, reinterpret_cast<const Bytef*>(bytes.data()) + kData,
                       static_cast<uLong>(bytes.size() - kData)),
            Z_OK);
  EXPECT_EQ(length, row.size());
  for (std::size_t i = 3; i < row.size(); ++i) row[i] = (row[i] + row[i - 2]) & 0xFF;
  std::vector<unsigned> numbers;
  for (std::size_t i = 1; i < row.size(); i += 2) numbers.push_back(row[i] * 256U + row[i + 1]);
  return numbers;
}

TEST(DrawTest, MapsAsPngSayWhatTheirNumbersStandFor) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "map.png";
  const auto written = [&](const char* of, const std::vector<float>& values) {
    const MapResult map{static_cast<int>(values.size()), 1, values};
    return write_map_png(file, std::get<MapTask>(task(of).what), map);
  };
  const MapCoding metres = written(kDepth, {1.5F, kNan, 0.0F, 65.5F});
  EXPECT_EQ(metres.step, 0.001);
  EXPECT_EQ(metres.offset, 0.0);
  EXPECT_THAT(stored_row(file, 4), testing::ElementsAre(1500, 0, 1, 65500));
  const Picture shown = load_picture(file.string());
  EXPECT_EQ(shown.channels, 1);
  EXPECT_TRUE(is_color(shown.image, 1, 0, {0, 0, 0}));
  EXPECT_NEAR(shown.image.data()[9], 255, 1);

  for (const char* what : {kDepth, kOtherMap}) {
    const std::vector<float> far{10.0F, kNan, 300.0F, 70.25F};
    const MapCoding spread = written(what, far);
    const std::vector<unsigned> row = stored_row(file, 4);
    EXPECT_EQ(row[0], 1U);
    EXPECT_EQ(row[1], 0U);
    EXPECT_EQ(row[2], 65535U);
    for (const std::size_t i : {0, 2, 3}) {
      EXPECT_NEAR(spread.offset + spread.step * row[i], far[i], spread.step / 2 + 1e-9) << i;
    }
  }
  const MapCoding flat = written(kOtherMap, {-7.0F});
  EXPECT_EQ(flat.offset + flat.step * stored_row(file, 1)[0], -7.0);
}

}  // namespace
}  // namespace run_model
