#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "postprocess/kinds.h"
#include "postprocess/map_places.h"
#include "postprocess/output_values.h"

namespace run_model {
namespace {

constexpr std::size_t kMostClasses = SegmentationResult::kUnseen;

// A network's map: scores of classes, numbers of classes, or a mask.
struct Map {
  std::size_t width = 0, height = 0, classes = 1;
  std::size_t pixel_step = 1, class_step = 1;
  const float* scores = nullptr;        // of several classes, or the mask before the activation
  bool sigmoid_mask = false;            // what the mask still needs
  const std::uint8_t* best = nullptr;   // the class of each pixel by itself
  std::vector<std::uint8_t> made = {};  // where `best` lies, unless the output has it

  std::uint8_t* make_best(std::size_t pixels) {
    made.resize(pixels);
    best = made.data();
    return made.data();
  }

  float score(std::size_t pixel, std::size_t c) const {
    return scores[pixel * pixel_step + c * class_step];
  }

  // Of a mask.
  float share(std::size_t pixel) const {
    return sigmoid_mask ? static_cast<float>(sigmoid(scores[pixel])) : scores[pixel];
  }
};

void read_scores(const SegmentationTask& task, const OutputValues& values, std::size_t labels,
                 Map& map) {
  const std::size_t least = std::max<std::size_t>(labels, 2);
  const OutputValues::Planes planes = values.planes(
      task.channels_last, least, labels > 0 ? std::min(labels, kMostClasses) : kMostClasses,
      "scores of " + (labels > 0 ? std::to_string(labels) : "2 to 255") + " classes");
  map.classes = planes.channels;
  map.height = planes.height;
  map.width = planes.width;
  map.pixel_step = planes.pixel_step;
  map.class_step = planes.channel_step;
  map.scores = values.data();
  std::uint8_t* best = map.make_best(map.width * map.height);
  std::vector<float> highest(map.made.size());
  for (std::size_t c = 0; c < map.classes; ++c) {
    for (std::size_t i = 0; i < highest.size(); ++i) {
      const float score = map.score(i, c);
      if (c == 0 || score > highest[i]) {
        highest[i] = score;
        best[i] = static_cast<std::uint8_t>(c);
      }
    }
  }
}

void read_indices(const OutputValues& values, std::size_t labels, Map& map) {
  const std::size_t most = labels > 0 ? std::min(labels, kMostClasses) : kMostClasses;
  const auto check = [&](bool right, double value) {
    if (right) return;
    values.fail_value("holds " + std::to_string(value) + ", expected the number of a class, 0 to " +
                          std::to_string(most - 1),
                      "give all classes a label, or correct the description of the task");
  };
  std::uint8_t largest = 0;
  if (const std::span<const std::uint8_t> bytes = values.bytes(); !bytes.empty()) {
    largest = *std::max_element(bytes.begin(), bytes.end());
    check(largest < most, largest);
    map.best = bytes.data();
  } else {
    std::uint8_t* best = map.make_best(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = values.data()[i];
      check(value >= 0 && value < static_cast<float>(most), value);
      best[i] = static_cast<std::uint8_t>(value);
      check(static_cast<float>(best[i]) == value, value);
      largest = std::max(largest, best[i]);
    }
  }
  map.classes = labels > 0 ? labels : std::size_t{largest} + 1;
}

// The least number before the sigmoid of a mask that is enough. Of 1 it is where the sigmoid is
// rounded to 1 as a float.
float least_logit(double threshold) {
  if (threshold >= 1) return static_cast<float>(25 * std::log(2.0));
  return static_cast<float>(std::log(threshold / (1 - threshold)));
}

// Which of the numbers are at least the threshold, 1 or 0 for each; whether all of them are shares,
// which are neither NaN nor infinite, so that one look at each number says all of it.
bool at_least(const float* numbers, std::size_t count, float threshold, std::uint8_t* found) {
  unsigned shares = 1;
  std::size_t i = 0;
#ifdef __SSE2__
  // Compilers make four times as many instructions of the way from numbers to bytes.
  constexpr std::size_t kStep = 16;
  const __m128 least = _mm_set1_ps(-OutputValues::kShareSlack);
  const __m128 most = _mm_set1_ps(1.0F + OutputValues::kShareSlack);
  const __m128 wanted = _mm_set1_ps(threshold);
  __m128 within = _mm_castsi128_ps(_mm_set1_epi32(-1));
  for (; i + kStep <= count; i += kStep) {
    const auto compare = [&](std::size_t k) {
      const __m128 four = _mm_loadu_ps(numbers + i + k);
      within = _mm_and_ps(within, _mm_and_ps(_mm_cmpge_ps(four, least), _mm_cmple_ps(four, most)));
      return _mm_castps_si128(_mm_cmpge_ps(four, wanted));
    };
    const __m128i first = _mm_packs_epi32(compare(0), compare(4));
    const __m128i second = _mm_packs_epi32(compare(8), compare(12));
    const __m128i bytes = _mm_and_si128(_mm_packs_epi16(first, second), _mm_set1_epi8(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(found + i), bytes);
  }
  shares = _mm_movemask_ps(within) == 0xF ? 1 : 0;
#endif
  for (; i < count; ++i) {
    found[i] = numbers[i] >= threshold ? 1 : 0;
    shares &= static_cast<unsigned>(OutputValues::is_share(numbers[i]));
  }
  return shares != 0;
}

void read_mask(const SegmentationTask& task, const OutputValues& values, Map& map) {
  map.classes = 2;
  map.scores = values.data();
  map.sigmoid_mask = task.activation == Activation::kSigmoid;
  if (map.sigmoid_mask) values.check_finite();
  const float threshold =
      map.sigmoid_mask ? least_logit(task.threshold) : static_cast<float>(task.threshold);
  const bool shares = at_least(map.scores, values.size(), threshold, map.make_best(values.size()));
  if (shares || map.sigmoid_mask) return;
  values.check_finite();
  values.check_shares(values.values(), "values of a mask");
}

// The class whose interpolated score is best, or whether the mask is enough.
std::uint8_t interpolated_class(const SegmentationTask& task, const Map& map, const Around& corners,
                                const Place& x, const Place& y) {
  if (task.form == SegmentationForm::kMask) {
    const float value =
        interpolated(corners, x, y, [&](std::size_t pixel) { return map.share(pixel); });
    return value >= static_cast<float>(task.threshold) ? 1 : 0;
  }
  std::size_t best = 0;
  float highest = 0.0F;
  for (std::size_t c = 0; c < map.classes; ++c) {
    const float score =
        interpolated(corners, x, y, [&](std::size_t pixel) { return map.score(pixel, c); });
    if (c == 0 || score > highest) {
      highest = score;
      best = c;
    }
  }
  return static_cast<std::uint8_t>(best);
}

std::uint8_t class_at(const SegmentationTask& task, const Map& map, const Place& x,
                      const Place& y) {
  if (!task.bilinear) return map.best[y.nearest * map.width + x.nearest];
  const Around corners(map.width, x, y);
  // Where all four agree, so does all between.
  const std::uint8_t first = map.best[corners.low_low];
  if (map.best[corners.low_high] == first && map.best[corners.high_low] == first &&
      map.best[corners.high_high] == first) {
    return first;
  }
  return interpolated_class(task, map, corners, x, y);
}

// Rows of the picture that follow each other have much in common: one row is kept, and what differs
// is painted again.
class RowPainter {
 public:
  RowPainter(const SegmentationTask& task, const Map& map, const std::vector<Place>& columns)
      : task_(task),
        map_(map),
        columns_(columns),
        agreed_(map.width),
        before_(map.width),
        row_(columns.size(), SegmentationResult::kUnseen) {
    // A network sees the columns from one to another.
    while (begin_ < columns.size() && !columns[begin_].seen) ++begin_;
    end_ = begin_;
    while (end_ < columns.size() && columns[end_].seen) ++end_;
    // Where on the picture the part between two columns of the map begins.
    starts_.assign(map.width + 1, end_);
    for (std::size_t i = end_; i > begin_; --i) starts_[cell_of(columns[i - 1])] = i - 1;
    for (std::size_t i = map.width; i > 0; --i)
      starts_[i - 1] = std::min(starts_[i - 1], starts_[i]);
  }

  void paint(const Place& y, std::vector<std::uint8_t>& classes) {
    if (!y.seen || begin_ == end_) {
      classes.insert(classes.end(), row_.size(), SegmentationResult::kUnseen);
      return;
    }
    const std::size_t low = cell_of(y), high = task_.bilinear ? y.high : low;
    if (low != low_ || high != high_) agree(low, high);
    for (const std::size_t cell : mixed_) mix(y, cell, row_.data());
    classes.insert(classes.end(), row_.begin(), row_.end());
  }

 private:
  static constexpr std::uint8_t kMixed = 255;  // is no class: there are at most 255
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // A pixel of the map, or with interpolation what lies between it and the next one.
  std::size_t cell_of(const Place& place) const {
    return task_.bilinear ? place.low : place.nearest;
  }

  void agree(std::size_t low_row, std::size_t high_row) {
    const bool first = high_ == kNone;
    low_ = low_row;
    high_ = high_row;
    agreed_.swap(before_);
    const std::uint8_t* low = map_.best + low_row * map_.width;
    const std::uint8_t* high = map_.best + high_row * map_.width;
    std::uint8_t* agreed = agreed_.data();
    const std::size_t count = agreed_.size();
    for (std::size_t i = 0; i < count; ++i) agreed[i] = low[i] == high[i] ? low[i] : kMixed;
    if (first || agreed_ != before_) fill_runs();
  }

  // Runs of one class are filled as they are; the cells between them are mixed for each row.
  void fill_runs() {
    mixed_.clear();
    const std::size_t last = cell_of(columns_[end_ - 1]);
    for (std::size_t cell = cell_of(columns_[begin_]); cell <= last;) {
      const std::uint8_t found = agreed_[cell];
      std::size_t next = cell;
      if (!task_.bilinear) {
        next = run_end(found, cell, last) + 1;
      } else if (found != kMixed) {
        const std::size_t end = std::min(last + 1, map_.width - 1);
        next = run_end(found, cell, end);
        // The map's last column has none behind it.
        if (next == end && last == map_.width - 1) next = map_.width;
      }
      if (next == cell) {
        mixed_.push_back(cell);
        ++cell;
        continue;
      }
      std::memset(row_.data() + starts_[cell], found, starts_[next] - starts_[cell]);
      cell = next;
    }
  }

  // Where the four pixels of the map around a cell do not agree. Of a mask they are read once for
  // all of the picture's between them.
  void mix(const Place& y, std::size_t cell, std::uint8_t* row) const {
    const std::size_t first = starts_[cell], end = starts_[cell + 1];
    if (first == end) return;
    if (task_.form != SegmentationForm::kMask) {
      for (std::size_t i = first; i < end; ++i) row[i] = class_at(task_, map_, columns_[i], y);
      return;
    }
    const Around corners(map_.width, columns_[first], y);
    const float shares[] = {map_.share(corners.low_low), map_.share(corners.low_high),
                            map_.share(corners.high_low), map_.share(corners.high_high)};
    const auto threshold = static_cast<float>(task_.threshold);
    const float down = y.weight;
    for (std::size_t i = first; i < end; ++i) {
      const float weight = columns_[i].weight;
      const float value = between(between(shares[0], shares[1], weight),
                                  between(shares[2], shares[3], weight), down);
      row[i] = value >= threshold ? 1 : 0;
    }
  }

  // Behind the last cell, from `cell` on and before `end`, whose two columns agree on `found`.
  std::size_t run_end(std::uint8_t found, std::size_t cell, std::size_t end) const {
    std::uint64_t eight = 0;
    const std::uint64_t wanted = found * std::uint64_t{0x0101010101010101};
    while (cell + sizeof eight < end) {
      std::memcpy(&eight, agreed_.data() + cell + 1, sizeof eight);
      if (eight != wanted) break;
      cell += sizeof eight;
    }
    while (cell < end && agreed_[cell + 1] == found) ++cell;
    return cell;
  }

  const SegmentationTask& task_;
  const Map& map_;
  const std::vector<Place>& columns_;
  std::size_t begin_ = 0, end_ = 0;   // of the columns that the network has seen
  std::vector<std::size_t> starts_;   // by the map's column
  std::vector<std::uint8_t> agreed_;  // the class of both rows of the map, by column
  std::vector<std::uint8_t> before_;  // the same of the rows painted before
  std::vector<std::uint8_t> row_;     // of the picture
  std::vector<std::size_t> mixed_;    // columns of the map
  std::size_t low_ = kNone, high_ = kNone;
};

}  // namespace

SegmentationResult segment(const SegmentationTask& task, std::size_t labels,
                           std::span<const NetworkOutput> outputs,
                           const PreprocessReport& picture) {
  using Reading = OutputValues::Reading;
  const OutputValues values(find_output(outputs, task.output),
                            task.form == SegmentationForm::kScores    ? Reading::kChecked
                            : task.form == SegmentationForm::kIndices ? Reading::kBytesToo
                                                                      : Reading::kUnchecked);
  Map map;
  if (task.form == SegmentationForm::kScores) {
    read_scores(task, values, labels, map);
  } else {
    const OutputValues::Sides sides = values.one_map();
    map.height = sides.height;
    map.width = sides.width;
    if (task.form == SegmentationForm::kIndices) {
      read_indices(values, labels, map);
    } else {
      read_mask(task, values, map);
    }
  }
  SegmentationResult result;
  result.width = picture.original_width;
  result.height = picture.original_height;
  result.class_count = map.classes;
  const std::size_t pixels =
      static_cast<std::size_t>(result.width) * static_cast<std::size_t>(result.height);
  if (WayBack(picture).turned()) {
    result.classes.assign(pixels, SegmentationResult::kUnseen);
    each_seen_pixel(picture, map.width, map.height,
                    [&](std::size_t pixel, const Place& x, const Place& y) {
                      result.classes[pixel] = class_at(task, map, x, y);
                    });
    return result;
  }
  const std::vector<Place> columns = Axis::across(picture).all(map.width);
  RowPainter painter(task, map, columns);
  result.classes.reserve(pixels);
  for (const Place& y : Axis::down(picture).all(map.height)) painter.paint(y, result.classes);
  return result;
}

}  // namespace run_model
