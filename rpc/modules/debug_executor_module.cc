#include "rpc/modules/debug_executor_module.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/text.h"
#include "rpc/modules/graph_executor_module.h"

namespace run_model::rpc {
namespace {

using Clock = std::chrono::steady_clock;

ExecutorOptions debug_options(std::vector<DLDevice> devices) {
  ExecutorOptions options = client_options(std::move(devices));
  options.plan_memory = false;
  return options;
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::string shapes_of(const NodeInfo& node) {
  std::string text;
  for (const auto* tensors : {&node.inputs, &node.outputs}) {
    for (const TensorInfo& tensor : *tensors) {
      text += (text.empty() ? "" : ", ") + dtype_name(tensor.dtype) + shape_name(tensor.shape);
    }
  }
  return text;
}

using nlohmann::json;

constexpr const char* kDevice = "cpu0";

// The reader knows no escapes of control characters other than line ends and tabs.
json text_metric(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') c = '?';
  }
  return {{"string", std::move(text)}};
}

json duration(double microseconds) { return {{"microseconds", microseconds}}; }
json count(int number) { return {{"count", number}}; }

json call_metrics(const ProfiledCall& call, double total) {
  json metrics = {{"Name", text_metric(call.function)},
                  {"Duration (us)", duration(call.microseconds)},
                  {"Percent", {{"percent", total > 0 ? call.microseconds / total * 100 : 0.0}}},
                  {"Device", text_metric(kDevice)},
                  {"Count", count(1)},
                  {"Argument Shapes", text_metric(call.shapes)}};
  for (const auto& [name, value] : call.labels) {
    metrics[name == "hash" ? "Hash" : text_metric(name)["string"].get<std::string>()] =
        text_metric(value);
  }
  return metrics;
}

}  // namespace

DebugExecutorModule::DebugExecutorModule(DebugExecutor executor)
    : GraphExecutorModule(std::move(executor)) {
  std::size_t next = 0;
  for (const GraphNode& node : this->executor().graph().nodes) {
    running_order_.push_back(node.kind == NodeKind::kInput ? std::nullopt : std::optional(next++));
  }
}

FunctionPointer DebugExecutorModule::find(const std::string& name) {
  using Self = DebugExecutorModule;
  static const Methods<Self> methods = {
      {"run", &Self::run_all},
      {"run_from_inputs", &Self::run_all_from_inputs},
      {"debug_get_output", &Self::debug_get_output},
      {"execute_node", &Self::execute_node},
      {"get_node_output", &Self::get_node_output},
      {"run_individual", &Self::run_individual},
      {"run_individual_node", &Self::run_individual_node},
      {"profile", &Self::profile},
      {"profile_rpc", &Self::profile_rpc},
  };
  FunctionPointer own =
      bind_method(std::static_pointer_cast<Self>(shared_from_this()), methods, name);
  return own != nullptr ? own : GraphExecutorModule::find(name);
}

std::size_t DebugExecutorModule::node_number(const Arguments& arguments, std::size_t i) const {
  if (!arguments.is_text(i)) {
    return arguments.integer_within(i, 0, static_cast<std::int64_t>(running_order_.size()) - 1);
  }
  const std::vector<GraphNode>& nodes = executor().graph().nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const GraphNode& node) {
    return node.name == arguments.text(i);
  });
  if (found == nodes.end()) {
    throw Error(ErrorKind::kMismatch,
                "the graph has no node of the name " + in_quotes(arguments.text(i)));
  }
  return static_cast<std::size_t>(found - nodes.begin());
}

void DebugExecutorModule::execute(std::size_t first, std::size_t last) {
  executed_.reset();
  for (std::size_t i = first; i <= last; ++i) {
    if (running_order_[i]) executor().run_node(*running_order_[i]);
  }
  executed_ = last;
}

Tensor DebugExecutorModule::output_of(std::size_t node, std::size_t output) {
  if (running_order_[node]) return executor().node_output(*running_order_[node], output).clone();
  const std::vector<std::size_t>& inputs = executor().graph().inputs;
  const auto input = std::find(inputs.begin(), inputs.end(), node);
  return executor().argument(static_cast<std::size_t>(input - inputs.begin())).clone();
}

Value DebugExecutorModule::run_all(const Arguments& arguments) {
  executed_.reset();
  run(arguments);
  executed_ = running_order_.size() - 1;
  return {};
}

Value DebugExecutorModule::run_all_from_inputs(const Arguments& arguments) {
  executed_.reset();
  Value outputs = run_from_inputs(arguments);
  executed_ = running_order_.size() - 1;
  return outputs;
}

Value DebugExecutorModule::debug_get_output(const Arguments& arguments) {
  arguments.check_count(1, 2);
  const std::size_t node = node_number(arguments, 0);
  if (executor().graph().nodes[node].num_outputs == 0)
    arguments.fail(0, "a node that has an output");
  execute(0, node);
  Tensor result = output_of(node, 0);
  if (arguments.size() == 1) return ArrayResult{std::move(result)};
  copy_to_argument(result, arguments, 1);
  return {};
}

Value DebugExecutorModule::execute_node(const Arguments& arguments) {
  arguments.check_count(1, 1);
  const std::size_t node = node_number(arguments, 0);
  execute(executed_ && *executed_ < node ? *executed_ + 1 : 0, node);
  return {};
}

Value DebugExecutorModule::get_node_output(const Arguments& arguments) {
  arguments.check_count(2, 2);
  const std::size_t node = node_number(arguments, 0);
  const auto outputs = static_cast<std::int64_t>(executor().graph().nodes[node].num_outputs);
  const auto output = static_cast<std::size_t>(arguments.integer_within(1, 0, outputs - 1));
  if (executed_ != node) {
    throw Error(ErrorKind::kMismatch,
                "the output of node " + std::to_string(node) +
                    " is not there: it was not the last one that was executed",
                "call execute_node(" + std::to_string(node) + ") first");
  }
  return ArrayResult{output_of(node, output)};
}

std::vector<double> DebugExecutorModule::seconds_of(std::size_t node, const Timing& timing) {
  if (!running_order_[node])
    return std::vector<double>(static_cast<std::size_t>(timing.repeat), 0.0);
  const std::size_t number = *running_order_[node];
  return measure([this, number] { executor().run_node(number); }, timing);
}

Value DebugExecutorModule::run_individual(const Arguments& arguments) {
  const Timing timing = timing_arguments(arguments, 0, arguments.size());
  const bool as_text = arguments.size() == kTimingArgumentsOf08;
  executed_.reset();
  executor().run();
  std::ostringstream text;
  const auto count = static_cast<std::int64_t>(running_order_.size());
  std::vector<std::byte> blob(sizeof(count));
  std::memcpy(blob.data(), &count, sizeof(count));
  for (std::size_t node = 0; node < running_order_.size(); ++node) {
    const std::vector<double> seconds = seconds_of(node, timing);
    if (as_text) text << seconds.back() << ",";
    const auto bytes = std::as_bytes(std::span(seconds));
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  if (as_text) return text.str();
  return Bytes::copy_of(blob);
}

Value DebugExecutorModule::run_individual_node(const Arguments& arguments) {
  const std::size_t node = node_number(arguments, 0);
  const Timing timing = timing_arguments(arguments, 1, arguments.size() - 1);
  executed_.reset();
  return bytes_of(seconds_of(node, timing));
}

Value DebugExecutorModule::profile(const Arguments&) {
  throw Error(ErrorKind::kUsage, "a profile's report cannot travel over RPC",
              "call profile_rpc, which gives it as JSON");
}

Value DebugExecutorModule::profile_rpc(const Arguments& arguments) {
  arguments.check_count(0, 0);
  executed_.reset();
  constexpr int kWarmUpRuns = 3;  // as TVM's
  for (int i = 0; i < kWarmUpRuns; ++i) executor().run();
  ProfileReport report;
  report.threads = ThreadPool::shared()->threads();
  for (const GraphNode& node : executor().graph().nodes) {
    if (node.kind == NodeKind::kInput) continue;
    report.calls.push_back(
        {node.function, 0, shapes_of(executor().nodes()[report.calls.size()]), node.labels});
  }
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < report.calls.size(); ++i) {
    const Clock::time_point call_start = Clock::now();
    executor().run_node(i);
    report.calls[i].microseconds = microseconds_since(call_start);
  }
  report.total_microseconds = microseconds_since(start);
  executed_ = running_order_.size() - 1;
  return to_json(report);
}

std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json,
                                                  std::vector<DLDevice> devices) {
  return std::make_shared<DebugExecutorModule>(
      DebugExecutor(library, graph_json, debug_options(std::move(devices))));
}

std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  std::vector<DLDevice> devices) {
  return std::make_shared<DebugExecutorModule>(
      DebugExecutor(library, debug_options(std::move(devices))));
}

std::string to_json(const ProfileReport& report) {
  json calls = json::array();
  for (const ProfiledCall& call : report.calls) {
    calls.push_back(call_metrics(call, report.total_microseconds));
  }
  const json document = {
      {"calls", std::move(calls)},
      {"device_metrics",
       {{kDevice,
         {{"Name", text_metric("Total")},
          {"Device", text_metric(kDevice)},
          {"Count", count(1)},
          {"Duration (us)", duration(report.total_microseconds)}}}}},
      {"configuration",
       {{"Executor", text_metric("Graph")}, {"Number of threads", count(report.threads)}}}};
  return document.dump();
}

}  // namespace run_model::rpc
