#include "run_model/run_model/profile/formats.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/write_file.h"
#include "profile/page.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

constexpr std::string_view kHeader =
    "index,name,function,family,inputs,outputs,bytes_read,bytes_written,parameter_bytes,calls,"
    "min_ms,mean_ms,p50_ms,p95_ms,max_ms,share_percent,cumulative_share_percent,operations,"
    "operations_rule,gflop_per_s,gb_per_s,live_bytes,workspace_bytes,kernel,onnx_nodes,device\r\n";

// Always in quotes: names may hold commas, quotes and line ends.
std::string text_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

std::string number_field(double value) { return formatted("%.6g", value); }

std::string number_field(const std::optional<double>& value) {
  return value ? number_field(*value) : "";
}

// "float32 [1, 3, 224, 224]; float32 [64]"
std::string forms(const std::vector<TensorInfo>& tensors) {
  return list_of(tensors, "; ", [](const TensorInfo& tensor) {
    return tensor_form_name(tensor.dtype, tensor.shape);
  });
}

std::string row(const ProfiledNode& node, std::size_t index) {
  const std::array<std::string, 26> fields = {
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
      node.kernel.empty() ? "" : text_field(node.kernel),
      node.onnx_nodes.empty() ? "" : text_field(comma_list(node.onnx_nodes)),
      node.info.device.empty() ? "cpu" : node.info.device};
  return list_of(fields, ",") + "\r\n";
}

}  // namespace

std::string profile_csv(const Profile& profile) {
  std::string text(kHeader);
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) text += row(profile.nodes[i], i);
  return text;
}

namespace {

Json start_event(std::string_view name, const char* phase) {
  Json json;
  json.put("name", name);
  json.put("ph", phase);
  json.put("pid", 1);
  json.put("tid", 1);
  return json;
}

Json named(const char* what, const std::string& name) {
  Json json = start_event(what, "M"), arguments;
  arguments.put("name", name);
  json.put("args", std::move(arguments));
  return json;
}

Json node_event(const ProfiledNode& node, std::size_t index) {
  Json json = start_event(node.info.function, "X"), arguments;
  json.put("cat", operator_family_key(node.family));
  json.put("ts", 1000.0 * node.start);
  json.put("dur", 1000.0 * (node.end - node.start));
  arguments.put("index", index);
  arguments.put("node", node.info.name);
  arguments.put("p50_ms", node.time.median);
  std::vector<std::string> outputs;
  for (const TensorInfo& output : node.info.outputs) {
    outputs.push_back(tensor_form_name(output.dtype, output.shape));
  }
  arguments.put("outputs", outputs);
  arguments.put("bytes", node.bytes_read + node.bytes_written);
  arguments.put("gflop_per_s", node.gflops());
  json.put("args", std::move(arguments));
  return json;
}

Json memory_event(double milliseconds, std::size_t live, std::size_t workspace) {
  Json json = start_event("memory", "C"), arguments;
  json.put("ts", 1000.0 * milliseconds);
  arguments.put("live activations", live);
  arguments.put("workspace", workspace);
  json.put("args", std::move(arguments));
  return json;
}

}  // namespace

// Format: "Trace Event Format", the document that chrome://tracing refers to.
std::string profile_trace(const Profile& profile) {
  Json events = Json::array();
  events.add(named("process_name", "run_model " + profile.model));
  events.add(
      named("thread_name", "nodes (calling thread of " + std::to_string(profile.threads) + ")"));
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const ProfiledNode& node = profile.nodes[i];
    events.add(node_event(node, i));
    events.add(memory_event(node.start, node.live_bytes, node.workspace_bytes));
  }
  if (!profile.nodes.empty()) events.add(memory_event(profile.nodes.back().end, 0, 0));
  Json json, about;
  json.put("displayTimeUnit", "ms");
  about.put("model", profile.model);
  about.put("target", profile.target);
  about.put("tvm_version", profile.tvm_version);
  about.put("threads", profile.threads);
  json.put("otherData", std::move(about));
  json.put("traceEvents", std::move(events));
  return json.text();
}

namespace {

// JSON that may stand inside of a script element: names come from the artifact, and one with
// "</script>" or "<!--" in it would end the element. Other characters than ASCII are escaped by
// dump().
std::string script_json(const Json& json) {
  const std::string plain = json.compact(true);
  std::string safe;
  safe.reserve(plain.size());
  for (const char c : plain) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string profile_html(const Profile& profile) {
  constexpr std::string_view kPage = kProfilePage;
  constexpr std::string_view kPlace = "{{profile}}";
  // Not computed by the compiler: GCC 12's UndefinedBehaviorSanitizer rejects find() in constants.
  const std::size_t at = kPage.find(kPlace);
  return std::string(kPage.substr(0, at)) + script_json(profile_json(profile)) +
         std::string(kPage.substr(at + kPlace.size()));
}

void write_profile_files(const Profile& profile, const ProfileSettings& settings) {
  if (!settings.csv.empty()) write_text_file(settings.csv, profile_csv(profile));
  if (!settings.trace.empty()) write_text_file(settings.trace, profile_trace(profile));
  if (!settings.html.empty()) write_text_file(settings.html, profile_html(profile));
  if (!settings.json.empty()) write_text_file(settings.json, profile_json(profile).text());
}

}  // namespace run_model
