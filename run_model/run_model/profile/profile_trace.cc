#include <utility>

#include "run_model/run_model/profile/profile_formats.h"
#include "run_model/shared/json.h"

namespace run_model {
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

}  // namespace run_model
