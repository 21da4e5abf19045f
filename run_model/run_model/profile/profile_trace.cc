#include <utility>

#include "run_model/run_model/profile/profile_formats.h"
#include "run_model/shared/json_put.h"

namespace run_model {
namespace {

Json start_event(std::string_view name, const char* phase) {
  Json json;
  put(json, "name", name);
  put(json, "ph", phase);
  put(json, "pid", 1);
  put(json, "tid", 1);
  return json;
}

Json named(const char* what, const std::string& name) {
  Json json = start_event(what, "M"), arguments;
  put(arguments, "name", name);
  put_json(json, "args", std::move(arguments));
  return json;
}

Json node_event(const ProfiledNode& node, std::size_t index) {
  Json json = start_event(node.info.function, "X"), arguments;
  put(json, "cat", operator_family_key(node.family));
  put(json, "ts", 1000.0 * node.start);
  put(json, "dur", 1000.0 * (node.end - node.start));
  put(arguments, "index", index);
  put(arguments, "node", node.info.name);
  put(arguments, "p50_ms", node.time.median);
  std::vector<std::string> outputs;
  for (const TensorInfo& output : node.info.outputs) {
    outputs.push_back(tensor_form_name(output.dtype, output.shape));
  }
  put(arguments, "outputs", outputs);
  put(arguments, "bytes", node.bytes_read + node.bytes_written);
  put(arguments, "gflop_per_s", node.gflops());
  put_json(json, "args", std::move(arguments));
  return json;
}

Json memory_event(double milliseconds, std::size_t live, std::size_t workspace) {
  Json json = start_event("memory", "C"), arguments;
  put(json, "ts", 1000.0 * milliseconds);
  put(arguments, "live activations", live);
  put(arguments, "workspace", workspace);
  put_json(json, "args", std::move(arguments));
  return json;
}

}  // namespace

// Format: "Trace Event Format", the document that chrome://tracing refers to.
std::string profile_trace(const Profile& profile) {
  Json events = Json::array();
  events.push_back(named("process_name", "run_model " + profile.model));
  events.push_back(
      named("thread_name", "nodes (calling thread of " + std::to_string(profile.threads) + ")"));
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const ProfiledNode& node = profile.nodes[i];
    events.push_back(node_event(node, i));
    events.push_back(memory_event(node.start, node.live_bytes, node.workspace_bytes));
  }
  if (!profile.nodes.empty()) events.push_back(memory_event(profile.nodes.back().end, 0, 0));
  Json json, about;
  put(json, "displayTimeUnit", "ms");
  put(about, "model", profile.model);
  put(about, "target", profile.target);
  put(about, "tvm_version", profile.tvm_version);
  put(about, "threads", profile.threads);
  put_json(json, "otherData", std::move(about));
  put_json(json, "traceEvents", std::move(events));
  return json_text(json);
}

}  // namespace run_model
