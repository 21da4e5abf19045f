#include "run_model/profile/profile_formats.h"

namespace run_model {
namespace {

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json tensors_json(const std::vector<TensorInfo>& tensors) {
  Json json = Json::array();
  for (const TensorInfo& tensor : tensors) json.push_back(tensor_json(tensor));
  return json;
}

Json statistics_json(const Statistics& times) {
  return {{"min", times.min}, {"mean", times.mean}, {"p50", times.median},
          {"p95", times.p95}, {"max", times.max}};
}

Json node_json(const ProfiledNode& node, std::size_t index) {
  Json json = {{"index", index},
               {"name", node.info.name},
               {"function", node.info.function},
               {"family", operator_family_key(node.family)}};
  json["inputs"] = tensors_json(node.info.inputs);
  json["outputs"] = tensors_json(node.info.outputs);
  json["bytes_read"] = node.bytes_read;
  json["bytes_written"] = node.bytes_written;
  json["parameter_bytes"] = node.parameter_bytes;
  json["calls"] = node.time.count;
  json["time_ms"] = statistics_json(node.time);
  json["share"] = node.share;
  json["cumulative_share"] = node.cumulative_share;
  json["operations"] = node.operations ? Json(node.operations->operations) : Json();
  json["operations_rule"] = node.operations ? Json(node.operations->rule) : Json();
  json["gflop_per_s"] = number_or_null(node.gflops());
  json["gb_per_s"] = number_or_null(node.gigabytes_per_second());
  json["live_bytes"] = node.live_bytes;
  json["workspace_bytes"] = node.workspace_bytes;
  json["fastest_run_ms"] = {{"start", node.start}, {"end", node.end}};
  return json;
}

Json family_json(const ProfiledFamily& family) {
  Json json = {{"family", operator_family_key(family.family)},
               {"title", operator_family_title(family.family)},
               {"nodes", family.nodes},
               {"time_ms", family.time},
               {"share", family.share},
               {"bytes", family.bytes}};
  json["counted_nodes"] = family.counted_nodes;
  json["operations"] = family.counted_nodes > 0 ? Json(family.operations) : Json();
  json["gflop_per_s"] = number_or_null(family.gflops());
  return json;
}

}  // namespace

Json profile_json(const Profile& profile) {
  Json json = {{"schema_version", kProfileSchema},
               {"model", profile.model},
               {"target", text_or_null(profile.target)},
               {"tvm_version", text_or_null(profile.tvm_version)},
               {"threads", profile.threads},
               {"runs", profile.runs},
               {"warm_up_runs", profile.warm_up_runs}};
  json["run_ms"] = statistics_json(profile.plain_run);
  json["node_by_node_ms"] = statistics_json(profile.node_run);
  json["sum_of_nodes_ms"] = profile.sum_of_nodes;
  json["overhead_ms"] = profile.overhead;
  const ProfileMemory& memory = profile.memory;
  json["memory"] = {{"params_mapped_bytes", memory.executor.params_mapped},
                    {"params_copied_bytes", memory.executor.params_copied},
                    {"activations_bytes", memory.executor.activations},
                    {"peak_live_bytes", memory.peak_live_bytes},
                    {"peak_live_node", memory.peak_node},
                    {"workspace_bytes", memory.workspace_bytes}};
  json["families"] = Json::array();
  for (const ProfiledFamily& family : profile.families) {
    json["families"].push_back(family_json(family));
  }
  json["nodes"] = Json::array();
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    json["nodes"].push_back(node_json(profile.nodes[i], i));
  }
  return json;
}

}  // namespace run_model
