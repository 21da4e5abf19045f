#include <run_model/task_result.h>

#include <algorithm>
#include <cmath>

#include <run_model/error.h>

namespace run_model {
namespace {

double area(const Box& box) { return (box.right - box.left) * (box.bottom - box.top); }

// COCO's rleToString: from the third on, counts are differences from the last but one; five bits a
// character from the lowest on, the sixth says that more follow.
std::string compressed(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::int64_t value = counts[i] - (i > 2 ? counts[i - 2] : 0);
    for (bool more = true; more;) {
      auto bits = static_cast<unsigned>(value & 0x1F);
      value >>= 5;
      more = (bits & 0x10U) != 0 ? value != -1 : value != 0;
      if (more) bits |= 0x20U;
      text += static_cast<char>(bits + 48);
    }
  }
  return text;
}

}  // namespace

double intersection_over_union(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (!(width > 0 && height > 0)) return 0.0;
  const double common = width * height;
  const double all = area(a) + area(b) - common;
  return all > 0 ? common / all : 0.0;
}

std::vector<std::string> coco_run_lengths(const SegmentationResult& segmentation) {
  std::vector<std::vector<std::int64_t>> counts(segmentation.class_count);
  std::vector<std::int64_t> ends(segmentation.class_count, 0);
  const auto width = static_cast<std::size_t>(segmentation.width);
  const auto height = static_cast<std::size_t>(segmentation.height);
  std::int64_t position = 0, begin = 0;
  std::size_t current = SegmentationResult::kUnseen;
  const auto close_run = [&] {
    if (position > begin && current < counts.size()) {
      counts[current].push_back(begin - ends[current]);
      counts[current].push_back(position - begin);
      ends[current] = position;
    }
    begin = position;
  };
  for (std::size_t x = 0; x < width; ++x) {
    for (std::size_t y = 0; y < height; ++y, ++position) {
      const std::size_t found = segmentation.classes[y * width + x];
      if (found == current) continue;
      close_run();
      current = found;
    }
  }
  close_run();
  std::vector<std::string> texts(counts.size());
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (counts[c].empty()) continue;
    if (ends[c] < position) counts[c].push_back(position - ends[c]);
    texts[c] = compressed(counts[c]);
  }
  return texts;
}

std::string coco_run_lengths(const InstanceMask& mask, int width, int height) {
  std::vector<std::int64_t> counts;
  std::int64_t begin = 0;
  bool inside = false;
  const auto change = [&](std::int64_t position) {
    counts.push_back(position - begin);
    begin = position;
    inside = !inside;
  };
  for (int x = 0; x < mask.width; ++x) {
    const std::int64_t column = std::int64_t{mask.left + x} * height + mask.top;
    for (int y = 0; y < mask.height; ++y) {
      const std::size_t pixel = static_cast<std::size_t>(y) * static_cast<std::size_t>(mask.width) +
                                static_cast<std::size_t>(x);
      if ((mask.pixels[pixel] != 0) != inside) change(column + y);
    }
    // What lies below and above is not of the mask.
    if (inside && (mask.top + mask.height < height || mask.top > 0)) change(column + mask.height);
  }
  const std::int64_t all = std::int64_t{width} * height;
  if (inside) change(std::int64_t{mask.left + mask.width} * height);
  if (begin < all || counts.empty()) counts.push_back(all - begin);
  return compressed(counts);
}

double cosine_similarity(const EmbeddingResult& a, const EmbeddingResult& b) {
  if (a.values.size() != b.values.size()) {
    throw Error(ErrorKind::kMismatch, "embeddings of " + std::to_string(a.values.size()) + " and " +
                                          std::to_string(b.values.size()) +
                                          " numbers cannot be compared");
  }
  double product = 0.0, square_a = 0.0, square_b = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    product += a.values[i] * b.values[i];
    square_a += a.values[i] * a.values[i];
    square_b += b.values[i] * b.values[i];
  }
  if (!(square_a > 0 && square_b > 0)) {
    throw Error(ErrorKind::kModel, "an embedding is zero, which has no direction to compare");
  }
  return std::clamp(product / (std::sqrt(square_a) * std::sqrt(square_b)), -1.0, 1.0);
}

}  // namespace run_model
