// The numbers of a network's output, of whatever element type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <run_model/postprocess.h>
#include <run_model/task.h>

namespace run_model {

// Throws Error(kMismatch) listing the outputs where there is no such one.
const NetworkOutput& find_output(std::span<const NetworkOutput> outputs,
                                 const OutputChoice& choice);

// The output as messages name it: "the output 'scores'".
std::string output_text(const NetworkOutput& output);

class OutputValues {
 public:
  // Reads float32 in place, so `output` has to stay. Throws Error(kMismatch) for an element type
  // that holds no numbers, Error(kModel) where one is NaN or infinite.
  explicit OutputValues(const NetworkOutput& output) : OutputValues(output, Reading::kChecked) {}

  // For who looks at every number anyway, NaN and infinity can be left to check_finite(). For who
  // takes bytes too, values() has nothing where bytes() has something.
  enum class Reading { kChecked, kUnchecked, kBytesToo };
  OutputValues(const NetworkOutput& output, Reading reading);
  OutputValues(const OutputValues&) = delete;
  OutputValues& operator=(const OutputValues&) = delete;

  const float* data() const { return values_.data(); }
  std::size_t size() const { return std::max(values_.size(), bytes_.size()); }
  std::span<const float> values() const { return values_; }

  // Of unsigned bytes that stand for themselves, with Reading::kBytesToo; else nothing.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

  // Without dimensions of 1.
  const std::vector<std::size_t>& dimensions() const { return dimensions_; }

  // Rows and columns of a table; what is given has to be so, and dimensions of 1 may stand
  // anywhere. `expected` says in the message what was. Throws Error(kMismatch).
  struct Table {
    std::size_t rows = 0, columns = 0;
  };
  Table table(std::optional<std::size_t> rows, std::optional<std::size_t> columns,
              const std::string& expected) const;

  // One map of [H, W], with dimensions of 1 before or behind; sides of 1 count where four
  // dimensions tell them. Throws Error(kMismatch).
  struct Sides {
    std::size_t height = 0, width = 0;
  };
  Sides one_map() const;

  // Maps of [1, channels, H, W] or [1, H, W, channels], with or without the first dimension: value
  // c of pixel i is data()[c * channel_step + i * pixel_step]. `expected` says in the message what
  // was. Throws Error(kMismatch), also where the channels are fewer than `least` or more than
  // `most`.
  struct Planes {
    std::size_t channels = 0, height = 0, width = 0;
    std::size_t channel_step = 0, pixel_step = 0;
  };
  Planes planes(bool channels_last, std::size_t least, std::size_t most,
                const std::string& expected) const;

  // A map for each of some rows, [rows, H, W] or [rows, 1, H, W]. Throws Error(kMismatch).
  Planes maps_of_rows(std::size_t rows) const;

  [[noreturn]] void fail_shape(const std::string& expected) const;
  [[noreturn]] void fail_value(const std::string& problem, const std::string& hint) const;

  // Throws Error(kModel) where one is NaN or infinite.
  void check_finite() const;

  // Throws Error(kModel) unless all of them are from 0 to 1, give or take rounding.
  void check_shares(std::span<const float> values, const std::string& what) const;

  // What the rounding of float16 can bring a probability beyond 1.
  static constexpr float kShareSlack = 1e-3F;

  // The same in loops that do more.
  static bool is_share(float value) {
    return (value >= -kShareSlack) & (value <= 1.0F + kShareSlack);
  }

 private:
  const NetworkOutput* output_;
  std::vector<float> converted_;
  std::span<const float> values_;
  std::span<const std::uint8_t> bytes_;
  std::vector<std::size_t> dimensions_;
};

double sigmoid(double value);

// From 0 to 1, for what rounding has brought a little beyond.
double clamped_share(double value);

}  // namespace run_model
