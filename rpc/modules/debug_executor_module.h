// A graph executor that also runs and measures single nodes: what TVM's GraphModuleDebug calls
// (graph_executor_debug.cc and debug_executor.py, v0.18.0).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/modules/graph_executor_module.h"
#include "rpc/timing.h"

namespace run_model::rpc {

// Nodes are numbered as in the graph's JSON, inputs included; running an input does nothing.
class DebugExecutorModule final : public GraphExecutorModule {
 public:
  // `executor` was made without planning memory: each node's result is to be seen.
  explicit DebugExecutorModule(DebugExecutor executor);

  std::string kind() const override { return "GraphExecutorDebug"; }
  FunctionPointer find(const std::string& name) override;

 private:
  Value run_all(const Arguments& arguments);
  Value run_all_from_inputs(const Arguments& arguments);

  // Runs the graph from its start to a node and gives a copy of the node's first output.
  Value debug_get_output(const Arguments& arguments);

  // Runs the graph from the node after the one that was executed last, from its start where that is
  // not before the node.
  Value execute_node(const Arguments& arguments);

  // A copy of an output of the node that was executed last.
  Value get_node_output(const Arguments& arguments);

  // Seconds that each node takes: int64 number of nodes, then `repeat` doubles for each, inputs
  // with zeros. TVM 0.8, which gives three arguments, gets one decimal number a node, with commas
  // behind.
  Value run_individual(const Arguments& arguments);
  Value run_individual_node(const Arguments& arguments);

  Value profile(const Arguments& arguments);
  Value profile_rpc(const Arguments& arguments);

  std::size_t node_number(const Arguments& arguments, std::size_t i) const;
  void execute(std::size_t first, std::size_t last);
  Tensor output_of(std::size_t node, std::size_t output);  // a copy
  std::vector<double> seconds_of(std::size_t node, const Timing& timing);

  std::vector<std::optional<std::size_t>> running_order_;  // of each node, nothing for inputs
  std::optional<std::size_t> executed_;  // all up to this node was run, nothing behind it since
};

// As make_graph_executor(), with the functions of TVM's debug executor in addition.
std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json,
                                                  std::vector<DLDevice> devices = {});
std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  std::vector<DLDevice> devices = {});

struct ProfiledCall {
  std::string function;
  double microseconds = 0;
  std::string shapes;  // of inputs and outputs: "float32[1, 8], float32[4]"
  std::vector<std::pair<std::string, std::string>> labels;  // GraphNode::labels
};

// What a run of each node of a graph took.
struct ProfileReport {
  std::vector<ProfiledCall> calls;
  double total_microseconds = 0;
  int threads = 0;
};

// In the form that TVM's Report.from_json reads. Format read from TVM's profiling.cc (v0.18.0),
// ReportNode::AsJSON and Report::FromJSON: "calls", a list of metrics by name; "device_metrics",
// those of each device; "configuration". A metric is an object with one member, which says what it
// is: "microseconds", "percent", "count" or "string".
std::string to_json(const ProfileReport& report);

}  // namespace run_model::rpc
