#include "postprocess/output_values.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr DLDataType kFloat32{kDLFloat, 32, 1}, kUint8{kDLUInt, 8, 1}, kInt8{kDLInt, 8, 1};

bool is_number(DLDataType type) {
  const bool known = type.code == kDLInt || type.code == kDLUInt || type.code == kDLFloat ||
                     type.code == kDLBfloat;
  return known && type.lanes == 1;
}

// A finite number's exponent is not all ones, so that adding one to it does not reach the sign.
// Nothing of it is a comparison, for which baseline x86-64 has no vectors of 32 bits.
bool all_finite(std::span<const float> values) {
  std::uint32_t carried = 0;
  for (const float value : values) {
    carried |= (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) + 0x00800000U;
  }
  return (carried & 0x80000000U) == 0;
}

}  // namespace

const NetworkOutput& find_output(std::span<const NetworkOutput> outputs,
                                 const OutputChoice& choice) {
  if (choice.name.empty()) {
    if (choice.index < outputs.size()) return outputs[choice.index];
    throw Error(ErrorKind::kMismatch, "the task asks for output " + std::to_string(choice.index) +
                                          ", but the model has " + std::to_string(outputs.size()) +
                                          ", counted from 0");
  }
  for (const NetworkOutput& output : outputs) {
    if (output.name == choice.name) return output;
  }
  for (const NetworkOutput& output : outputs) {
    if (output.alias == choice.name) return output;
  }
  throw Error(ErrorKind::kMismatch,
              "the task asks for the output " + in_quotes(choice.name) +
                  ", but the model's outputs are " +
                  comma_list(outputs,
                             [](const NetworkOutput& output) {
                               return in_quotes(output.name.empty() ? output.alias : output.name);
                             }),
              "correct the name in the description of the task");
}

std::string output_text(const NetworkOutput& output) {
  return "the output " + in_quotes(output.name.empty() ? output.alias : output.name);
}

OutputValues::OutputValues(const NetworkOutput& output, Reading reading) : output_(&output) {
  if (!is_number(output.tensor.dtype())) {
    throw Error(ErrorKind::kMismatch, output_text(output) + " is of " +
                                          dtype_name(output.tensor.dtype()) +
                                          ", and numbers were expected");
  }
  for (const std::int64_t dimension : output.tensor.shape()) {
    if (dimension != 1) dimensions_.push_back(static_cast<std::size_t>(dimension));
  }
  if (same_dtype(output.tensor.dtype(), kFloat32)) {
    const std::span<float> elements = output.tensor.elements<float>();
    values_ = {elements.data(), elements.size()};
  } else if (reading == Reading::kBytesToo && same_dtype(output.tensor.dtype(), kUint8) &&
             output.scale == 1.0 && output.zero_point == 0) {
    bytes_ = output.tensor.elements<std::uint8_t>();
  } else {
    const bool integer =
        output.tensor.dtype().code == kDLInt || output.tensor.dtype().code == kDLUInt;
    const double scale = integer ? output.scale : 1.0;
    const double zero = integer ? static_cast<double>(output.zero_point) : 0.0;
    const auto convert = [&](const auto& stored) {
      converted_.resize(stored.size());
      for (std::size_t i = 0; i < converted_.size(); ++i) {
        converted_[i] = static_cast<float>(scale * (static_cast<double>(stored[i]) - zero));
      }
    };
    // Maps of class numbers and quantised networks' outputs are large.
    if (same_dtype(output.tensor.dtype(), kUint8)) {
      convert(output.tensor.elements<std::uint8_t>());
    } else if (same_dtype(output.tensor.dtype(), kInt8)) {
      convert(output.tensor.elements<std::int8_t>());
    } else {
      convert(to_doubles(output.tensor));
    }
    values_ = converted_;
  }
  if (reading == Reading::kChecked) check_finite();
}

void OutputValues::check_finite() const {
  if (all_finite(values_)) return;
  const auto bad = std::find_if_not(values_.begin(), values_.end(),
                                    [](float value) { return std::isfinite(value); });
  fail_value(std::string("holds ") + (std::isnan(*bad) ? "NaN" : "infinity") + " at element " +
                 std::to_string(bad - values_.begin()),
             "check that the preprocessing and the parameters are the model's own");
}

OutputValues::Table OutputValues::table(std::optional<std::size_t> rows,
                                        std::optional<std::size_t> columns,
                                        const std::string& expected) const {
  const auto fits = [&](std::size_t r, std::size_t c) {
    return (!rows || *rows == r) && (!columns || *columns == c);
  };
  std::optional<Table> table;
  if (dimensions_.size() == 2 && fits(dimensions_[0], dimensions_[1])) {
    table = Table{dimensions_[0], dimensions_[1]};
  } else if (dimensions_.size() == 1 && fits(dimensions_[0], 1) && (rows || columns)) {
    table = Table{dimensions_[0], 1};
  } else if (dimensions_.size() == 1 && fits(1, dimensions_[0])) {
    table = Table{1, dimensions_[0]};
  } else if (dimensions_.empty() && fits(1, 1)) {
    table = Table{1, 1};
  }
  if (!table) fail_shape(expected);
  return *table;
}

OutputValues::Sides OutputValues::one_map() const {
  const std::vector<std::int64_t>& shape = output_->tensor.shape();
  std::vector<std::size_t> sides = dimensions_;
  if (sides.size() != 2 && shape.size() == 4 && shape[0] == 1) {
    const std::size_t first = shape[1] == 1 ? 2 : 1;
    sides = {static_cast<std::size_t>(shape[first]), static_cast<std::size_t>(shape[first + 1])};
  }
  if (sides.size() != 2 || sides[0] * sides[1] != size() || size() == 0) {
    fail_shape("a map of [1, H, W], [1, 1, H, W] or [1, H, W, 1]");
  }
  return {sides[0], sides[1]};
}

OutputValues::Planes OutputValues::planes(bool channels_last, std::size_t least, std::size_t most,
                                          const std::string& expected) const {
  std::vector<std::size_t> shape;
  for (const std::int64_t side : output_->tensor.shape()) {
    shape.push_back(static_cast<std::size_t>(side));
  }
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const std::size_t channels = shape.size() == 4 ? shape[channels_last ? 3 : 1] : 0;
  if (shape.size() != 4 || shape[0] != 1 || size() == 0 || channels < least || channels > most) {
    fail_shape(expected + (channels_last ? " as [1, H, W, C]" : " as [1, C, H, W]"));
  }
  if (channels_last) return {channels, shape[1], shape[2], 1, channels};
  return {channels, shape[2], shape[3], shape[2] * shape[3], 1};
}

OutputValues::Planes OutputValues::maps_of_rows(std::size_t rows) const {
  const std::vector<std::int64_t>& shape = output_->tensor.shape();
  if (shape.size() < 3 || shape.size() > 4 || (shape.size() == 4 && shape[1] != 1) ||
      shape.front() != static_cast<std::int64_t>(rows)) {
    fail_shape("maps of " + std::to_string(rows) + " boxes as [N, H, W] or [N, 1, H, W]");
  }
  const auto height = static_cast<std::size_t>(shape[shape.size() - 2]);
  const auto width = static_cast<std::size_t>(shape.back());
  return {rows, height, width, height * width, 1};
}

void OutputValues::fail_shape(const std::string& expected) const {
  throw Error(ErrorKind::kMismatch,
              output_text(*output_) + " has the shape " + shape_name(output_->tensor.shape()) +
                  ", expected " + expected,
              "correct the description of the task, or compile the model that it describes");
}

void OutputValues::fail_value(const std::string& problem, const std::string& hint) const {
  throw Error(ErrorKind::kModel, output_text(*output_) + " " + problem, hint);
}

void OutputValues::check_shares(std::span<const float> values, const std::string& what) const {
  // Nearly always all are right: this is a loop that a compiler makes vector instructions of.
  unsigned right = 1;
  for (const float value : values) right &= static_cast<unsigned>(is_share(value));
  if (right == 0) {
    const auto [least_at, most_at] = std::minmax_element(values.begin(), values.end());
    const float least = *least_at, most = *most_at;
    fail_value(
        "holds " + what + " of " + std::to_string(least < -kShareSlack ? least : most) +
            ", expected 0 to 1",
        "\"activation\" may have to be sigmoid or softmax, and integers may lack their scale "
        "in metadata.json");
  }
}

double sigmoid(double value) { return 1.0 / (1.0 + std::exp(-value)); }

double clamped_share(double value) { return std::clamp(value, 0.0, 1.0); }

}  // namespace run_model
