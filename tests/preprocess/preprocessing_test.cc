#include <run_model/preprocessing.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <run_model/decode.h>
#include <run_model/error.h>
#include "fixtures.h"

namespace run_model {
namespace {

using testing::HasSubstr;

Preprocessing from_json(const nlohmann::json& json) {
  Preprocessing result;
  result.resizer = parse_resizer(json["resizer"].get<std::string>());
  result.fit = parse_fit(json["fit"].get<std::string>());
  result.resize = json.value("resize", result.resize);
  const nlohmann::json pad = json.value("pad", nlohmann::json());
  if (pad.is_string()) result.outside = Outside::kEdge;
  if (pad.is_number()) {
    result.pad = pad;
    result.outside = Outside::kPad;
  }
  const bool down = json.value("rounding", "") == "down";
  result.letterbox = {json.value("position", "") == "start", down};
  if (down) result.crop_start = CropStart::kDown;
  result.color_order = parse_color_order(json["color_order"].get<std::string>());
  result.divide_by = json["divide_by"];
  result.mean = json["mean"];
  result.std = json["std"];
  return result;
}

// Pillow or OpenCV, and NumPy, made the tensors whose checksums stand in tensors.json.
TEST(Preprocess, EqualsTheReferenceBitForBit) {
  for (const auto& entry : fixtures::read_json("tensors.json")) {
    SCOPED_TRACE(entry.dump());
    const Image image =
        entry.contains("pattern")
            ? fixtures::make_pattern(entry["pattern"][0], entry["pattern"][1], entry["pattern"][2])
            : load_picture(fixtures::source_path(entry["picture"])).image;
    PreprocessReport report;
    const Tensor tensor = preprocess(image, from_json(entry["preprocessing"]),
                                     entry["shape"].get<std::vector<std::int64_t>>(),
                                     parse_dtype(entry["dtype"].get<std::string>()),
                                     parse_layout(entry["layout"].get<std::string>()), &report);
    EXPECT_EQ(report.resized_width, entry["resized"][0]);
    EXPECT_EQ(report.resized_height, entry["resized"][1]);
    if (entry["dtype"] == "float32") {
      for (std::size_t i = 0; i < entry["first"].size(); ++i) {
        EXPECT_EQ(tensor.elements<float>()[i], entry["first"][i].get<float>()) << i;
      }
    }
    const auto* bytes = static_cast<const std::uint8_t*>(tensor.data());
    EXPECT_EQ(fixtures::checksum({bytes, tensor.nbytes()}),
              std::stoul(entry["crc32"].get<std::string>(), nullptr, 16));
  }
}

TEST(Preprocess, ReportsEveryStage) {
  PreprocessReport report;
  preprocess(fixtures::make_pattern(451, 300, 1), Preprocessing(),
             std::vector<std::int64_t>{1, 3, 224, 224}, DLDataType{kDLFloat, 32, 1}, Layout::kNchw,
             &report);
  EXPECT_EQ(report.original_width, 451);
  EXPECT_EQ(report.original_height, 300);
  EXPECT_EQ(report.resized_width, 384);
  EXPECT_EQ(report.resized_height, 256);
  EXPECT_EQ(report.crop, (Region{80, 16, 224, 224}));
  EXPECT_EQ(report.input_width, 224);
  EXPECT_EQ(report.input_height, 224);
}

// With any resizer: whole pixels are cut out, and others are taken between pixels.
TEST(Preprocess, ARegionStandsForThePicture) {
  const Image image = fixtures::make_pattern(90, 60, 1);
  Image part(40, 30);
  for (int y = 0; y < 30; ++y) {
    std::copy_n(image.row(y + 7) + std::ptrdiff_t{5} * kImageChannels, part.row_bytes(),
                part.row(y));
  }
  Preprocessing squash;
  squash.fit = Fit::kSquash;
  const std::vector<std::int64_t> shape{1, 3, 16, 20};
  const DLDataType type{kDLFloat, 32, 1};
  const PictureRegion region{5, 7, 40, 30};
  PreprocessReport report;
  const Tensor made = preprocess(image, squash, shape, type, Layout::kNchw, &report, &region);
  const Tensor expected = preprocess(part, squash, shape, type, Layout::kNchw);
  EXPECT_THAT(made.elements<float>(), testing::ElementsAreArray(expected.elements<float>()));
  EXPECT_EQ(report.original_width, 90);
  EXPECT_EQ(report.region, region);
  EXPECT_DOUBLE_EQ(5 * report.scale_x + report.offset_x, 0.0);
  EXPECT_DOUBLE_EQ(45 * report.scale_x + report.offset_x, 20.0);
  EXPECT_DOUBLE_EQ(37 * report.scale_y + report.offset_y, 16.0);

  // Turned by half a turn it is the same part, the other way round; by a quarter of a degree it
  // hardly differs.
  const PictureRegion turned{5, 7, 40, 30, 180};
  const Tensor around = preprocess(image, squash, shape, type, Layout::kNchw, nullptr, &turned);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 320; ++i) {
      EXPECT_NEAR(around.elements<float>()[c * 320 + 319 - i], made.elements<float>()[c * 320 + i],
                  2.0F)
          << c << " " << i;
    }
  }
}

TEST(Preprocess, GrayIsPillowsLuma) {
  Image image(1, 1);
  image.data()[0] = 200;
  image.data()[1] = 100;
  image.data()[2] = 50;
  Preprocessing gray;
  gray.color_order = ColorOrder::kGray;
  gray.fit = Fit::kSquash;
  const Tensor tensor = preprocess(image, gray, std::vector<std::int64_t>{1, 1, 2, 2},
                                   DLDataType{kDLFloat, 32, 1}, Layout::kNchw);
  // Image.new("RGB", (1, 1), (200, 100, 50)).convert("L") is 124.
  EXPECT_THAT(tensor.elements<float>(), testing::Each(124.0F));
  EXPECT_THROW(preprocess(image, gray, std::vector<std::int64_t>{1, 3, 2, 2},
                          DLDataType{kDLFloat, 32, 1}, Layout::kNchw),
               Error);
}

TEST(Preprocess, SettingsThatMakeNoSenseAreNamed) {
  const auto refusal = [](auto change) {
    Preprocessing preprocessing;
    change(preprocessing);
    try {
      check_preprocessing(preprocessing);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal([](Preprocessing&) {}), "");
  EXPECT_THAT(refusal([](Preprocessing& p) { p.std[1] = 0; }), HasSubstr("std"));
  EXPECT_THAT(refusal([](Preprocessing& p) { p.std[2] = kInfinity; }), HasSubstr("std"));
  EXPECT_THAT(refusal([](Preprocessing& p) { p.mean[0] = std::nanf(""); }), HasSubstr("mean"));
  EXPECT_THAT(refusal([](Preprocessing& p) { p.divide_by = 0; }), HasSubstr("divide_by"));
  EXPECT_THAT(refusal([](Preprocessing& p) { p.resize = 0; }), HasSubstr("short side"));
  EXPECT_THAT(refusal([](Preprocessing& p) {
                p.fit = Fit::kSquashCrop;
                p.resizer = Resizer::kCv2Warp;
              }),
              HasSubstr("squash-crop has no meaning with the resizer cv2-warp"));
}

TEST(Preprocess, WholeNumbersThatLeaveNoPictureAreRefused) {
  constexpr std::int64_t kShape[] = {1, 3, 4, 4};
  const auto leaves = [&](float divide_by, DLDataTypeCode code, std::uint8_t bits) {
    Preprocessing preprocessing;
    preprocessing.fit = Fit::kSquash;
    preprocessing.divide_by = divide_by;
    try {
      preprocess(fixtures::make_pattern(8, 8, 0), preprocessing, kShape,
                 DLDataType{static_cast<std::uint8_t>(code), bits, 1}, Layout::kNchw);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      return std::string(error.what());
    }
    return std::string();
  };
  // 0 to 1, which would be 0 and 1.
  EXPECT_THAT(leaves(255.0F, kDLUInt, 8), HasSubstr("leaves 2 of the 256 values"));
  EXPECT_THAT(leaves(127.5F, kDLInt, 8), HasSubstr("leaves 3 of the 256 values"));
  EXPECT_EQ(leaves(255.0F, kDLFloat, 32), "");
  EXPECT_EQ(leaves(255.0F, kDLFloat, 16), "");
  EXPECT_EQ(leaves(35.0F, kDLUInt, 8), "");  // 0 to 7
}

TEST(Preprocess, AnImageWithoutPixelsIsRefused) {
  constexpr std::int64_t kShape[] = {1, 3, 4, 4};
  for (const Fit fit : {Fit::kCrop, Fit::kSquash, Fit::kLetterbox, Fit::kPad, Fit::kSquashCrop}) {
    for (const Resizer resizer : {Resizer::kNearest, Resizer::kPilBilinear, Resizer::kCv2Warp}) {
      if (fit == Fit::kSquashCrop && resizer == Resizer::kCv2Warp) continue;
      Preprocessing preprocessing;
      preprocessing.fit = fit;
      preprocessing.resizer = resizer;
      try {
        preprocess(Image(), preprocessing, kShape, DLDataType{kDLFloat, 32, 1}, Layout::kNchw);
        ADD_FAILURE() << fit_name(fit) << ", " << resizer_name(resizer);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kImage) << error.what();
      }
    }
  }
}

TEST(Preprocess, ImageNetValuesFollowTheColorOrder) {
  EXPECT_EQ(imagenet_mean(ColorOrder::kRgb)[0], 0.485F);
  EXPECT_EQ(imagenet_mean(ColorOrder::kBgr)[0], 0.406F);
  EXPECT_EQ(imagenet_std(ColorOrder::kBgr)[2], 0.229F);
  EXPECT_EQ(usual_resize(224), 256);
}

TEST(Preprocess, NamesAreParsed) {
  for (const ColorOrder order : {ColorOrder::kRgb, ColorOrder::kBgr, ColorOrder::kGray}) {
    EXPECT_EQ(parse_color_order(color_order_name(order)), order);
  }
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChw, Layout::kHwc}) {
    EXPECT_EQ(parse_layout(layout_name(layout)), layout);
  }
  EXPECT_THROW(parse_color_order("rgb"), Error);
  EXPECT_THROW(parse_layout("CWH"), Error);
}

}  // namespace
}  // namespace run_model
