#include "run_model/run_model/profile/formats.h"

#include <utility>

#include "run_model/run_model/report/artifact_json.h"

namespace run_model {
namespace {

void put_statistics(Json& object, const char* key, const Statistics& times) {
  Json json;
  json.put("min", times.min);
  json.put("mean", times.mean);
  json.put("p50", times.median);
  json.put("p95", times.p95);
  json.put("max", times.max);
  object.put(key, std::move(json));
}

Json node_json(const ProfiledNode& node, std::size_t index) {
  Json json;
  json.put("index", index);
  json.put("name", node.info.name);
  json.put("function", node.info.function);
  json.put("device", node.info.device.empty() ? "cpu" : node.info.device);
  json.put("family", operator_family_key(node.family));
  json.put("kernel", text_or_null(node.kernel));
  json.put("onnx_nodes", node.onnx_nodes);
  json.put("inputs", tensors_json(node.info.inputs));
  json.put("outputs", tensors_json(node.info.outputs));
  json.put("bytes_read", node.bytes_read);
  json.put("bytes_written", node.bytes_written);
  json.put("parameter_bytes", node.parameter_bytes);
  json.put("calls", node.time.count);
  put_statistics(json, "time_ms", node.time);
  json.put("share", node.share);
  json.put("cumulative_share", node.cumulative_share);
  if (node.operations) {
    json.put("operations", node.operations->operations);
    json.put("operations_rule", node.operations->rule);
  } else {
    json.put("operations", Json());
    json.put("operations_rule", Json());
  }
  json.put("gflop_per_s", node.gflops());
  json.put("gb_per_s", node.gigabytes_per_second());
  json.put("live_bytes", node.live_bytes);
  json.put("workspace_bytes", node.workspace_bytes);
  Json interval;
  interval.put("start", node.start);
  interval.put("end", node.end);
  json.put("fastest_run_ms", std::move(interval));
  return json;
}

Json family_json(const ProfiledFamily& family) {
  Json json;
  json.put("family", operator_family_key(family.family));
  json.put("title", operator_family_title(family.family));
  json.put("nodes", family.nodes);
  json.put("time_ms", family.time);
  json.put("share", family.share);
  json.put("bytes", family.bytes);
  json.put("counted_nodes", family.counted_nodes);
  if (family.counted_nodes > 0) {
    json.put("operations", family.operations);
  } else {
    json.put("operations", Json());
  }
  json.put("gflop_per_s", family.gflops());
  return json;
}

Json memory_json(const ProfileMemory& memory) {
  Json json;
  json.put("params_mapped_bytes", memory.executor.params_mapped);
  json.put("params_copied_bytes", memory.executor.params_copied);
  json.put("activations_bytes", memory.executor.activations);
  json.put("device_params_bytes", memory.executor.device_params);
  json.put("device_activations_bytes", memory.executor.device_activations);
  json.put("device_workspaces_bytes", memory.executor.device_workspaces);
  json.put("peak_live_bytes", memory.peak_live_bytes);
  json.put("peak_live_node", memory.peak_node);
  json.put("workspace_bytes", memory.workspace_bytes);
  return json;
}

}  // namespace

Json profile_json(const Profile& profile) {
  Json json;
  json.put("schema_version", kProfileSchema);
  json.put("model", profile.model);
  json.put("target", text_or_null(profile.target));
  json.put("tvm_version", text_or_null(profile.tvm_version));
  json.put("threads", profile.threads);
  if (!profile.functions.empty()) json.put("functions", profile.functions);
  json.put("runs", profile.runs);
  json.put("warm_up_runs", profile.warm_up_runs);
  put_statistics(json, "run_ms", profile.plain_run);
  put_statistics(json, "node_by_node_ms", profile.node_run);
  json.put("sum_of_nodes_ms", profile.sum_of_nodes);
  json.put("overhead_ms", profile.overhead);
  json.put("memory", memory_json(profile.memory));
  Json families = Json::array();
  for (const ProfiledFamily& family : profile.families) families.add(family_json(family));
  json.put("families", std::move(families));
  Json nodes = Json::array();
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    nodes.add(node_json(profile.nodes[i], i));
  }
  json.put("nodes", std::move(nodes));
  return json;
}

}  // namespace run_model
