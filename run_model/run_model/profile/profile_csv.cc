#include <array>
#include <cstdio>
#include <string_view>

#include "run_model/run_model/profile/profile_formats.h"

namespace run_model {
namespace {

constexpr std::string_view kHeader =
    "index,name,function,family,inputs,outputs,bytes_read,bytes_written,parameter_bytes,calls,"
    "min_ms,mean_ms,p50_ms,p95_ms,max_ms,share_percent,cumulative_share_percent,operations,"
    "operations_rule,gflop_per_s,gb_per_s,live_bytes,workspace_bytes,kernel\r\n";

// Always in quotes: names may hold commas, quotes and line ends.
std::string text_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

std::string number_field(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string number_field(const std::optional<double>& value) {
  return value ? number_field(*value) : "";
}

// "float32 [1, 3, 224, 224]; float32 [64]"
std::string forms(const std::vector<TensorInfo>& tensors) {
  std::string text;
  for (const TensorInfo& tensor : tensors) {
    text += (text.empty() ? "" : "; ") + tensor_form_name(tensor.dtype, tensor.shape);
  }
  return text;
}

std::string row(const ProfiledNode& node, std::size_t index) {
  const std::array<std::string, 24> fields = {
      std::to_string(index),
      text_field(node.info.name),
      text_field(node.info.function),
      std::string(operator_family_key(node.family)),
      text_field(forms(node.info.inputs)),
      text_field(forms(node.info.outputs)),
      std::to_string(node.bytes_read),
      std::to_string(node.bytes_written),
      std::to_string(node.parameter_bytes),
      std::to_string(node.time.count),
      number_field(node.time.min),
      number_field(node.time.mean),
      number_field(node.time.median),
      number_field(node.time.p95),
      number_field(node.time.max),
      number_field(100.0 * node.share),
      number_field(100.0 * node.cumulative_share),
      node.operations ? std::to_string(node.operations->operations) : "",
      node.operations ? text_field(node.operations->rule) : "",
      number_field(node.gflops()),
      number_field(node.gigabytes_per_second()),
      std::to_string(node.live_bytes),
      std::to_string(node.workspace_bytes),
      node.kernel.empty() ? "" : text_field(node.kernel)};
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + field;
  return line + "\r\n";
}

}  // namespace

std::string profile_csv(const Profile& profile) {
  std::string text(kHeader);
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) text += row(profile.nodes[i], i);
  return text;
}

}  // namespace run_model
