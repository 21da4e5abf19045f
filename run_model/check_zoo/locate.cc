#include "run_model/check_zoo/locate.h"

#include <cstdio>

#include "artifacts/references/golden_case.h"
#include "base/file.h"
#include "base/text.h"
#include "run_model/check_zoo/judge.h"
#include "run_model/check_zoo/locate_departure.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

using Lines = std::vector<std::string>;

// ONNX Runtime gives its intermediate tensors without optimising the network, which changes the
// result by 1e-4 of the largest score where random weights amplify rounding.
constexpr double kSameNetwork = 1e-2;

std::string number_text(double value) { return formatted("%.6g", value); }

// "0007:fire2/relu_out" without the place in the ONNX graph, which only keeps the order.
std::string onnx_name(const std::string& member) {
  const std::size_t digits = member.find_first_not_of("0123456789");
  return in_quotes(digits != 0 && digits != member.npos && member[digits] == ':'
                       ? member.substr(digits + 1)
                       : member);
}

std::string form(const TensorInfo& info) { return tensor_form_name(info.dtype, info.shape); }

std::string node_name(const std::vector<NodeInfo>& nodes, std::size_t i) {
  return "node " + std::to_string(i) + " of " + std::to_string(nodes.size()) + ", " +
         in_quotes(nodes[i].name, 200);
}

std::string what_is(const ReferenceMatch& match, double tolerance) {
  if (match.scaled) {
    return ", the ONNX tensor " + onnx_name(match.tensor) + " but for a factor for each channel";
  }
  if (!match.tensor.empty() && match.relative_error() <= tolerance) {
    return ", right: the ONNX tensor " + onnx_name(match.tensor);
  }
  return ", which has no counterpart among the ONNX tensors";
}

Lines input_lines(const std::vector<NodeInfo>& nodes, const std::vector<ReferenceMatch>& matches,
                  const Departure& departure) {
  Lines lines;
  for (const TensorInfo& input : nodes[departure.node].inputs) {
    std::string line = "  reads " + in_quotes(input.name, 200) + " " + form(input);
    bool is_node = false;
    for (std::size_t i = departure.node; i-- > 0 && !is_node;) {
      for (const TensorInfo& output : nodes[i].outputs) is_node |= output.name == input.name;
      if (!is_node) continue;
      line += what_is(matches[i], departure.tolerance);
    }
    if (!is_node) line += ", a parameter or an input";
    lines.push_back(line);
  }
  return lines;
}

Lines describe(const std::vector<NodeInfo>& nodes, const std::vector<ReferenceMatch>& matches,
               const Departure& departure) {
  const NodeInfo& node = nodes[departure.node];
  const ReferenceMatch& match = matches[departure.node];
  const std::size_t elements = static_cast<std::size_t>(element_count(match.shape));
  Lines lines{"departs first: " + node_name(nodes, departure.node),
              "  function " + in_quotes(node.function, 200)};
  for (const std::string& line : input_lines(nodes, matches, departure)) lines.push_back(line);
  for (const TensorInfo& output : node.outputs) lines.push_back("  writes " + form(output));
  lines.push_back("  closest to it, read " + match.layout + ", is the ONNX tensor " +
                  onnx_name(match.tensor) + " " + shape_name(match.shape) + ": " +
                  std::to_string(match.wrong) + " of " + std::to_string(elements) +
                  " values differ, the largest by " + number_text(match.largest_error) +
                  " (values go to " + number_text(match.scale) + ")");
  lines.push_back("  the first that differs is number " + std::to_string(match.first_wrong) + ": " +
                  number_text(match.actual) + ", expected " + number_text(match.expected));
  for (const std::size_t suspect : departure.suspects) {
    lines.push_back("  or it is " + node_name(nodes, suspect) + ", which leads to it" +
                    what_is(matches[suspect], departure.tolerance));
  }
  return lines;
}

Lines locate(DebugExecutor& executor, const std::filesystem::path& path,
             const CheckSettings& settings) {
  const GoldenCase golden = read_golden_case(path);
  if (!golden.tasks.empty()) {
    return {"cannot locate: there are no intermediate tensors of networks with tasks"};
  }
  const std::filesystem::path file = settings.intermediates / golden.model / (golden.name + ".npz");
  const std::string remake = "scripts/make_golden --zoo " + golden.model +
                             " --intermediates --pictures " +
                             (settings.images / golden.picture.file).string() + " makes it";
  if (!is_there(file)) {
    return {"cannot locate: " + path_in_quotes(file) + " is not there: " + remake};
  }
  const ReferenceTensors references(read_npz(file));
  const ReferenceMatch output = references.closest(golden.output);
  if (output.tensor.empty() || output.relative_error() > kSameNetwork) {
    return {"cannot locate: " + path_in_quotes(file) +
            " does not hold the golden case's output, so it is of another network or picture; " +
            remake};
  }
  fill_input(executor, golden, settings.images);
  const std::vector<ReferenceMatch> matches = match_nodes(executor, references);
  const auto departure = find_departure(executor.nodes(), matches);
  if (departure) return describe(executor.nodes(), matches, *departure);
  Lines lines{"no node departs from the " + std::to_string(references.size()) +
              " tensors of the reference by more than rounding"};
  if (const auto growth = largest_growth(matches)) {
    lines.push_back("  errors grow most at " + node_name(executor.nodes(), growth->node) +
                    ": from " + number_text(growth->before) + " to " + number_text(growth->after) +
                    " of the largest value");
  }
  return lines;
}

}  // namespace

std::vector<std::string> locate_case(DebugExecutor& executor, const std::filesystem::path& golden,
                                     const CheckSettings& settings) {
  try {
    return locate(executor, golden, settings);
  } catch (const std::exception& error) {
    return {std::string("cannot locate: ") + error.what()};
  }
}

}  // namespace run_model
