#include "run_model/profile/profile_formats.h"

namespace run_model {
namespace {

constexpr int kProcess = 1;
constexpr int kThread = 1;

Json metadata_event(const char* what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", kThread}, {"args", {{"name", name}}}};
}

Json node_event(const ProfiledNode& node, std::size_t index) {
  Json arguments = {{"index", index}, {"node", node.info.name}, {"p50_ms", node.time.median}};
  Json outputs = Json::array();
  for (const TensorInfo& output : node.info.outputs) {
    outputs.push_back(tensor_form_name(output.dtype, output.shape));
  }
  arguments["outputs"] = outputs;
  arguments["bytes"] = node.bytes_read + node.bytes_written;
  if (const auto gflops = node.gflops()) arguments["gflop_per_s"] = *gflops;
  return {{"name", node.info.function},
          {"cat", operator_family_key(node.family)},
          {"ph", "X"},
          {"pid", kProcess},
          {"tid", kThread},
          {"ts", 1000.0 * node.start},
          {"dur", 1000.0 * (node.end - node.start)},
          {"args", arguments}};
}

Json memory_event(double milliseconds, std::size_t live, std::size_t workspace) {
  return {{"name", "memory"}, {"ph", "C"}, {"pid", kProcess}, {"ts", 1000.0 * milliseconds},
          {"args", {{"live activations", live}, {"workspace", workspace}}}};
}

}  // namespace

// Format: "Trace Event Format", the document that chrome://tracing refers to.
std::string profile_trace(const Profile& profile) {
  Json events = Json::array();
  events.push_back(metadata_event("process_name", "run_model " + profile.model));
  events.push_back(metadata_event("thread_name", "nodes (calling thread of " +
                                                     std::to_string(profile.threads) + ")"));
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    const ProfiledNode& node = profile.nodes[i];
    events.push_back(node_event(node, i));
    events.push_back(memory_event(node.start, node.live_bytes, node.workspace_bytes));
  }
  if (!profile.nodes.empty()) events.push_back(memory_event(profile.nodes.back().end, 0, 0));
  const Json json = {{"displayTimeUnit", "ms"},
                     {"otherData",
                      {{"model", profile.model},
                       {"target", profile.target},
                       {"tvm_version", profile.tvm_version},
                       {"threads", profile.threads}}},
                     {"traceEvents", events}};
  return json_text(json);
}

}  // namespace run_model
