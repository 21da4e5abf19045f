#include "run_model/run_model/report/report.h"

#include <array>
#include <utility>

#include "run_model/run_model/machine/reports.h"
#include "run_model/run_model/measure/timing_report.h"
#include "run_model/run_model/profile/formats.h"
#include "run_model/run_model/report/results.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

std::string milliseconds_text(double value) { return formatted("%.2f ms", value); }

std::string time_line(const RunReport& report) {
  const Timing& timing = report.timing;
  std::string text = "Time: load " + milliseconds_text(timing.load);
  if (timing.preprocess > 0) {
    text += ", preprocess " + milliseconds_text(timing.preprocess);
    if (report.measurement) text += " (decode " + milliseconds_text(timing.decode) + ")";
  }
  text += (report.measurement ? ", first run " : ", run ") + milliseconds_text(timing.run);
  if (timing.postprocess > 0) text += ", postprocess " + milliseconds_text(timing.postprocess);
  text += " (";
  for (const std::string& device : report.devices) text += "on " + device + ", ";
  return text + std::to_string(report.threads) +
         (report.threads == 1 ? " thread)\n" : " threads)\n");
}

// What every kind of run has: "Time: …", then what was measured beyond that.
std::string run_report_text(const RunReport& report) {
  std::string text = time_line(report);
  if (report.measurement) text += timing_text(*report.measurement);
  if (report.profile && report.profile_settings.table) {
    text += profile_text(*report.profile, report.profile_settings, report_width());
  }
  if (report.memory.enabled()) text += memory_text(report.memory);
  if (report.sweep) text += thread_sweep_text(*report.sweep);
  if (report.measurement || report.profile || report.sweep) {
    text += thread_plan_text(report.thread_plan);
    if (report.machine) text += machine_text(*report.machine);
  }
  return text;
}

// Six significant digits, as C++ streams print by default.
std::string number_text(double value) { return formatted("%g", value); }

std::string size(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

std::string dimensions(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dimension : shape) text += " " + std::to_string(dimension);
  return text;
}

std::string range(const ValueRange& values) {
  return "[" + number_text(values.min) + ", " + number_text(values.max) +
         "], mean: " + number_text(values.mean);
}

// `gap` aligns the values of "Std" below those of "Mean" as the wrapper did.
std::string channel_values(const char* name, const char* gap, const std::array<float, 3>& values,
                           ColorOrder order) {
  const std::string a = number_text(values[0]), b = number_text(values[1]),
                    c = number_text(values[2]);
  const std::string start = name;
  switch (order) {
    case ColorOrder::kRgb:
      return start + " (R,G,B):" + gap + "[" + a + ", " + b + ", " + c + "]\n";
    case ColorOrder::kBgr:
      return start + ": B=" + a + " G=" + b + " R=" + c + "\n";
    case ColorOrder::kGray:
      break;
  }
  return start + ": " + a + "\n";
}

std::string scaling(float divide_by) {
  if (divide_by == 255.0F) return "0.0 to 1.0 (PyTorch-style)";
  if (divide_by == 1.0F) return "0 to 255 (Caffe-style)";
  return "divided by " + number_text(divide_by);
}

std::string preprocessing_lines(const PictureReport& report) {
  const PreprocessReport& sides = report.sides;
  const Preprocessing& preprocessing = report.preprocessing;
  std::string text;
  text += "Original image: " + size(sides.original_width, sides.original_height) + "x" +
          std::to_string(report.image_channels) + "\n";
  text += "Resized to: " + size(sides.resized_width, sides.resized_height) + "\n";
  text += "Final image size: " + size(sides.input_width, sides.input_height) + "x" +
          std::to_string(channel_count(preprocessing.color_order)) + "\n";
  text += "Color order: " + std::string(color_order_name(preprocessing.color_order)) + "\n";
  text += "Pixel scaling: " + scaling(preprocessing.divide_by) + "\n";
  text += channel_values("Mean", " ", preprocessing.mean, preprocessing.color_order);
  text += channel_values("Std", "  ", preprocessing.std, preprocessing.color_order);
  return text;
}

}  // namespace

std::string picture_report_text(const PictureReport& report) {
  std::string text = preprocessing_lines(report);
  text += "Input tensor range: " + range(report.input.range) + "\n";
  if (report.described) {
    for (const TensorInfo& output : report.outputs) {
      text += "Output " + output.name + ":" + dimensions(output.shape) + "\n";
    }
    text += run_report_text(report.run);
    text += "\n===== Running " + report.run.package.model + " =====\n" + results_text(report);
    if (!report.drawn.empty()) text += "Drawn: " + report.drawn.string() + "\n";
    if (report.map) text += map_file_text(*report.map);
    return text;
  }
  text += "Output shape:" + dimensions(report.output.info.shape) + "\n";
  text += std::string(report.output_is_distribution ? "Output" : "Logits") +
          " range: " + range(report.output.range) + "\n";
  text += run_report_text(report.run);

  text += "\n===== Running " + report.run.package.model + " =====\n";
  text += "Top-" + std::to_string(report.top.size()) + " Predictions:\n";
  for (std::size_t i = 0; i < report.top.size(); ++i) {
    const RankedClass& ranked = report.top[i];
    text += "  " + std::to_string(i + 1) + ") id=" + std::to_string(ranked.index) +
            "  p=" + number_text(ranked.probability) + "  " + ranked.label + "\n";
  }
  const RankedClass& best = report.top.front();
  text += "Predicted class: " + std::to_string(best.index) + " (" + best.label + ")\n";
  return text;
}

std::string tensors_report_text(const TensorsReport& report) {
  const auto line = [](const char* what, const TensorInfo& info) {
    return std::string(what) + " " + info.name + ": " + dtype_name(info.dtype) +
           dimensions(info.shape);
  };
  std::string text;
  for (const TensorInfo& input : report.inputs) text += line("Input", input) + "\n";
  for (const TensorReport& output : report.outputs) {
    text += line("Output", output.info) + ", range: " + range(output.range) + "\n";
  }
  text += run_report_text(report.run);
  if (!report.outputs_file.empty()) text += "Written: " + report.outputs_file.string() + "\n";
  return text;
}

}  // namespace run_model
