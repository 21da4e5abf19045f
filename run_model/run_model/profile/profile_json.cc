#include <utility>

#include "run_model/run_model/profile/profile_formats.h"
#include "run_model/shared/json_put.h"

namespace run_model {
namespace {

Json tensors_json(const std::vector<TensorInfo>& tensors) {
  Json json = Json::array();
  for (const TensorInfo& tensor : tensors) json.push_back(tensor_json(tensor));
  return json;
}

void put_statistics(Json& object, const char* key, const Statistics& times) {
  Json json;
  put(json, "min", times.min);
  put(json, "mean", times.mean);
  put(json, "p50", times.median);
  put(json, "p95", times.p95);
  put(json, "max", times.max);
  put_json(object, key, std::move(json));
}

Json node_json(const ProfiledNode& node, std::size_t index) {
  Json json;
  put(json, "index", index);
  put(json, "name", node.info.name);
  put(json, "function", node.info.function);
  put(json, "family", operator_family_key(node.family));
  put_text_or_null(json, "kernel", node.kernel);
  put_json(json, "inputs", tensors_json(node.info.inputs));
  put_json(json, "outputs", tensors_json(node.info.outputs));
  put(json, "bytes_read", node.bytes_read);
  put(json, "bytes_written", node.bytes_written);
  put(json, "parameter_bytes", node.parameter_bytes);
  put(json, "calls", node.time.count);
  put_statistics(json, "time_ms", node.time);
  put(json, "share", node.share);
  put(json, "cumulative_share", node.cumulative_share);
  if (node.operations) {
    put(json, "operations", node.operations->operations);
    put(json, "operations_rule", node.operations->rule);
  } else {
    put_null(json, "operations");
    put_null(json, "operations_rule");
  }
  put(json, "gflop_per_s", node.gflops());
  put(json, "gb_per_s", node.gigabytes_per_second());
  put(json, "live_bytes", node.live_bytes);
  put(json, "workspace_bytes", node.workspace_bytes);
  Json interval;
  put(interval, "start", node.start);
  put(interval, "end", node.end);
  put_json(json, "fastest_run_ms", std::move(interval));
  return json;
}

Json family_json(const ProfiledFamily& family) {
  Json json;
  put(json, "family", operator_family_key(family.family));
  put(json, "title", operator_family_title(family.family));
  put(json, "nodes", family.nodes);
  put(json, "time_ms", family.time);
  put(json, "share", family.share);
  put(json, "bytes", family.bytes);
  put(json, "counted_nodes", family.counted_nodes);
  if (family.counted_nodes > 0) {
    put(json, "operations", family.operations);
  } else {
    put_null(json, "operations");
  }
  put(json, "gflop_per_s", family.gflops());
  return json;
}

Json memory_json(const ProfileMemory& memory) {
  Json json;
  put(json, "params_mapped_bytes", memory.executor.params_mapped);
  put(json, "params_copied_bytes", memory.executor.params_copied);
  put(json, "activations_bytes", memory.executor.activations);
  put(json, "peak_live_bytes", memory.peak_live_bytes);
  put(json, "peak_live_node", memory.peak_node);
  put(json, "workspace_bytes", memory.workspace_bytes);
  return json;
}

}  // namespace

Json profile_json(const Profile& profile) {
  Json json;
  put(json, "schema_version", kProfileSchema);
  put(json, "model", profile.model);
  put_text_or_null(json, "target", profile.target);
  put_text_or_null(json, "tvm_version", profile.tvm_version);
  put(json, "threads", profile.threads);
  put(json, "runs", profile.runs);
  put(json, "warm_up_runs", profile.warm_up_runs);
  put_statistics(json, "run_ms", profile.plain_run);
  put_statistics(json, "node_by_node_ms", profile.node_run);
  put(json, "sum_of_nodes_ms", profile.sum_of_nodes);
  put(json, "overhead_ms", profile.overhead);
  put_json(json, "memory", memory_json(profile.memory));
  Json families = Json::array();
  for (const ProfiledFamily& family : profile.families) families.push_back(family_json(family));
  put_json(json, "families", std::move(families));
  Json nodes = Json::array();
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    nodes.push_back(node_json(profile.nodes[i], i));
  }
  put_json(json, "nodes", std::move(nodes));
  return json;
}

}  // namespace run_model
