#include "run_model/run_model/preprocessing_choice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "preprocess/open_sides.h"
#include "preprocess/to_tensor.h"

namespace run_model {
namespace {

using ChannelValues = std::array<float, 3>;

ChannelValues to_channels(const std::array<double, 3>& values) {
  return {static_cast<float>(values[0]), static_cast<float>(values[1]),
          static_cast<float>(values[2])};
}

ChannelValues reversed(ChannelValues channels) {
  std::swap(channels[0], channels[2]);
  return channels;
}

bool is_channel_count(std::int64_t dimension) { return dimension == 1 || dimension == 3; }

// Of three axes, which sequences have too, one alone is 3 and both others are longer.
std::optional<Layout> layout_without_batch(const std::vector<std::int64_t>& shape) {
  const auto is_picture = [&](std::size_t channels, std::size_t height, std::size_t width) {
    return shape[channels] == 3 && shape[height] > 3 && shape[width] > 3;
  };
  if (is_picture(0, 1, 2)) return Layout::kChw;
  if (is_picture(2, 0, 1)) return Layout::kHwc;
  return std::nullopt;
}

const MetadataTensor* find_input(const Metadata* metadata, const std::string& name) {
  if (metadata == nullptr) return nullptr;
  const auto found =
      std::find_if(metadata->inputs.begin(), metadata->inputs.end(),
                   [&](const MetadataTensor& tensor) { return tensor.name == name; });
  return found == metadata->inputs.end() ? nullptr : &*found;
}

Layout choose_layout(const PreprocessingFlags& flags, const Metadata* metadata,
                     const TensorInfo& input) {
  if (!flags.layout.empty()) return parse_layout(flags.layout);
  const MetadataTensor* described = find_input(metadata, input.name);
  if (described != nullptr && !described->layout.empty()) return parse_layout(described->layout);

  const std::string found =
      "the model's input " + in_quotes(input.name) + " has the shape " + shape_name(input.shape);
  const std::size_t rank = input.shape.size();
  if (rank == 3) {
    if (const auto layout = layout_without_batch(input.shape)) return *layout;
  }
  const bool first = (rank == 3 || rank == 4) && is_channel_count(input.shape[rank - 3]);
  const bool last = (rank == 3 || rank == 4) && is_channel_count(input.shape.back());
  if (rank == 3 ? first || last : first && last) {
    throw Error(ErrorKind::kUsage,
                found + (rank == 3 ? ", which may be CHW, HWC or no picture's"
                                   : ", which may be NCHW or NHWC"),
                "say which with --layout");
  }
  if (!first && !last) {
    throw Error(ErrorKind::kMismatch,
                found +
                    ", but a picture needs [1, 3, height, width] or [1, height, width, 3], with or "
                    "without the 1",
                "run a model that takes no pictures with --inputs");
  }
  return first ? Layout::kNchw : Layout::kNhwc;
}

ColorOrder choose_color_order(const PreprocessingFlags& flags, const Preprocessing* base,
                              std::int64_t channels) {
  if (channels == 1) {
    if (!flags.color_order.empty()) {
      throw Error(ErrorKind::kUsage, "the model takes grey pictures of one channel",
                  "leave --rgb and --bgr out");
    }
    return ColorOrder::kGray;
  }
  if (!flags.color_order.empty()) return parse_color_order(flags.color_order);
  return base != nullptr ? base->color_order : ColorOrder::kRgb;
}

// The scale, and mean and deviation unless flags give them.
void choose_scale(const PreprocessingFlags& flags, const Preprocessing* base,
                  Preprocessing& chosen) {
  if (flags.normalize.has_value()) {
    if (*flags.normalize) {
      chosen.divide_by = 255.0F;
      chosen.mean = imagenet_mean(chosen.color_order);
      chosen.std = imagenet_std(chosen.color_order);
    }
    return;
  }
  if (base == nullptr) {
    throw Error(ErrorKind::kUsage,
                "nothing says how this model wants its pixels: the artifact has no metadata with a "
                "preprocessing section",
                "give --normalize (0 to 1, ImageNet's mean and deviation) or --no-normalize "
                "(0 to 255)");
  }
  chosen.divide_by = base->divide_by;
  chosen.mean = base->mean;
  chosen.std = base->std;
  if (base->color_order != chosen.color_order && chosen.color_order != ColorOrder::kGray) {
    chosen.mean = reversed(chosen.mean);
    chosen.std = reversed(chosen.std);
  }
}

void choose_mean_and_std(const PreprocessingFlags& flags, Preprocessing& chosen) {
  const bool reverse = flags.mean_in_rgb_order && chosen.color_order == ColorOrder::kBgr;
  if (flags.mean)
    chosen.mean = reverse ? reversed(to_channels(*flags.mean)) : to_channels(*flags.mean);
  if (flags.std) chosen.std = reverse ? reversed(to_channels(*flags.std)) : to_channels(*flags.std);
}

void choose_geometry(const PreprocessingFlags& flags, const Preprocessing* base,
                     const InputSize& size, Preprocessing& chosen) {
  if (!flags.resizer.empty()) {
    chosen.resizer = parse_resizer(flags.resizer);
  } else if (base != nullptr) {
    chosen.resizer = base->resizer;
  }
  if (!flags.fit.empty()) {
    chosen.fit = parse_fit(flags.fit);
  } else if (base != nullptr) {
    chosen.fit = base->fit;
  }
  if (base != nullptr) {
    chosen.pad = base->pad;
    chosen.letterbox = base->letterbox;
    // What lies outside is said for a resizer and a fit.
    if (flags.resizer.empty() && flags.fit.empty()) chosen.outside = base->outside;
  }

  if (!crops(chosen.fit)) {
    if (flags.resize || flags.crop) {
      throw Error(ErrorKind::kUsage,
                  std::string("--resize and --crop have no meaning with the fit ") +
                      std::string(fit_name(chosen.fit)),
                  "leave them out or give --fit crop");
    }
    return;
  }
  const bool base_crops = base != nullptr && crops(base->fit);
  if (base_crops) chosen.crop_start = base->crop_start;
  chosen.crop = flags.crop.value_or(base_crops && !flags.size ? base->crop : 0);
  if (chosen.crop != 0 && (chosen.crop != size.width || chosen.crop != size.height)) {
    throw Error(ErrorKind::kMismatch,
                "a crop of " + std::to_string(chosen.crop) +
                    " does not give the model's input of " + std::to_string(size.width) + "x" +
                    std::to_string(size.height),
                "leave --crop out, or correct the metadata");
  }
  const int longer = std::max(size.width, size.height);
  int usual = usual_resize(longer);
  if (base_crops) {
    usual = flags.size ? resize_for_side(*base, longer) : base->resize;
  }
  chosen.resize = flags.resize.value_or(usual);
  if (chosen.resize < longer) {
    throw Error(ErrorKind::kUsage,
                "a short side of " + std::to_string(chosen.resize) +
                    " is less than the model's input of " + std::to_string(size.width) + "x" +
                    std::to_string(size.height),
                "give a larger --resize");
  }
}

}  // namespace

PreprocessingChoice choose_preprocessing(const PreprocessingFlags& flags, const Metadata* metadata,
                                         const TensorInfo& input) {
  const Preprocessing* base =
      metadata != nullptr && metadata->preprocessing ? &*metadata->preprocessing : nullptr;
  PreprocessingChoice choice;
  choice.layout = choose_layout(flags, metadata, input);
  choice.shape = shape_with_sides(input, choice.layout, flags.size);
  const std::size_t channel_axis = layout_name(choice.layout).find('C');
  const bool gray = channel_axis < choice.shape.size() && choice.shape[channel_axis] == 1;
  const std::int64_t channels = gray ? 1 : 3;
  const InputSize size =
      picture_input_size(choice.shape, choice.layout, static_cast<int>(channels));
  choice.preprocessing.color_order = choose_color_order(flags, base, channels);
  choose_scale(flags, base, choice.preprocessing);
  choose_mean_and_std(flags, choice.preprocessing);
  choose_geometry(flags, base, size, choice.preprocessing);
  check_preprocessing(choice.preprocessing);
  return choice;
}

}  // namespace run_model
