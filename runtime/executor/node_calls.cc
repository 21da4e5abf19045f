#include "runtime/executor/node_calls.h"

#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/relax/interpreter.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

constexpr std::size_t kNoCall = static_cast<std::size_t>(-1);

// Bytes of `data` from all over it, enough to tell whether a function that should leave it as it is
// moves or changes anything: blocks of kSampleBlock bytes at kSamples places, all of it where it is
// short.
std::vector<char> sample(const char* data, std::size_t bytes) {
  constexpr std::size_t kSampleBlock = 64;
  constexpr std::size_t kSamples = 256;
  if (bytes <= kSampleBlock * kSamples) return {data, data + bytes};
  std::vector<char> samples;
  samples.reserve(kSampleBlock * kSamples);
  const std::size_t last = bytes - kSampleBlock;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const char* block = data + last / (kSamples - 1) * i;
    samples.insert(samples.end(), block, block + kSampleBlock);
  }
  return samples;
}

bool speaks_ffi(const Module& module) {
  const ModelLibrary* library = as_model_library(module);
  return library != nullptr && library->speaks_ffi();
}

}  // namespace

NodeCalls::NodeCalls(const LoadedModel& model, EntryStorage& entries)
    : model_(model), entries_(entries) {
  const Graph& graph = model_.graph;
  for (std::size_t number = 0; number < graph.nodes.size(); ++number) {
    const GraphNode& node = graph.nodes[number];
    if (node.kind == NodeKind::kInput) continue;
    in_graph_.push_back(number);
    const bool nothing_to_do =
        node.kind == NodeKind::kNop && model_.plan.alias_of[node.first_output] != node.first_output;
    call_of_node_.push_back(nothing_to_do ? kNoCall : calls_.size());
    if (!nothing_to_do) calls_.push_back(prepare_call(number));
  }
}

void NodeCalls::run_all() {
  for (Call& call : calls_) execute(call);
}

void NodeCalls::run(std::size_t node) {
  const std::size_t call = call_of_node_.at(node);
  if (call != kNoCall) execute(calls_[call]);
}

NodeCalls::Call NodeCalls::prepare_call(std::size_t number) {
  const GraphNode& node = model_.graph.nodes[number];
  Call call;
  call.node = number;
  call.joined = entries_.plan().joined[number];
  if (node.kind == NodeKind::kFunction && speaks_ffi(*model_.module)) {
    prepare_ffi_call(node, call);
    return call;
  }
  call.interpreted = node.kind == NodeKind::kMachine;
  call.first_argument = values_.size();
  call.num_arguments = static_cast<int>(node.inputs.size() + node.num_outputs);
  for (std::size_t entry : node.inputs) add_argument(entry, node.flatten);
  for (std::size_t i = 0; i < node.num_outputs; ++i) {
    add_argument(node.first_output + i, node.flatten);
  }
  if (node.kind == NodeKind::kFunction) {
    call.function = model_.module->find(node.function);
    if (call.function == nullptr) throw_missing(node);
  }
  return call;
}

// A tensor is handed over as a DLTensor, which is what a compiled function makes of every form.
void NodeCalls::prepare_ffi_call(const GraphNode& node, Call& call) {
  call.ffi = as_model_library(*model_.module)->find_ffi(node.function);
  if (call.ffi == nullptr) call.ffi = find_runtime_function(node.function);
  if (call.ffi == nullptr) throw_missing(node);
  std::vector<NodeArgument> arguments = node.arguments;
  if (arguments.empty()) {
    for (std::size_t entry : node.inputs) arguments.push_back({GraphTensor{entry}});
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      arguments.push_back({GraphTensor{node.first_output + i}});
    }
  }
  call.first_argument = ffi_values_.size();
  call.num_arguments = static_cast<int>(arguments.size());
  for (const NodeArgument& argument : arguments) {
    const auto make = [&]<typename T>(const T& value) {
      if constexpr (std::is_same_v<T, GraphTensor>) {
        FfiAny any;
        any.type = kFfiTensorPointer;
        any.pointer = entries_.argument(value.entry, false);
        return FfiValue(any);
      } else if constexpr (std::is_same_v<T, bool>) {
        return FfiValue::of_bool(value);
      } else if constexpr (std::is_same_v<T, double>) {
        return FfiValue::of_real(value);
      } else if constexpr (std::is_same_v<T, DLDataType>) {
        return FfiValue::of_dtype(value);
      } else if constexpr (std::is_same_v<T, std::string>) {
        return FfiValue::of_text(value);
      } else {
        return FfiValue::of_integer(value);
      }
    };
    ffi_values_.push_back(std::visit(make, argument.value));
  }
}

void NodeCalls::add_argument(std::size_t entry, bool flatten) {
  PackedValue value{};
  value.v_handle = entries_.argument(entry, flatten);
  values_.push_back(value);
  type_codes_.push_back(kTypeTensorHandle);
}

void NodeCalls::execute(Call& call) {
  if (call.joined) {
    if (!call.checked) check_join(call);
    return;
  }
  execute_now(call);
}

// What a function does is known by its name alone. It is run once on tensors that lie where it
// would copy them to, which has to change nothing.
void NodeCalls::check_join(Call& call) {
  const GraphNode& node = model_.graph.nodes[call.node];
  const char* data = static_cast<const char*>(entries_.data(node.first_output));
  const std::size_t bytes = model_.graph.entries[node.first_output].bytes;
  const std::vector<char> before = sample(data, bytes);
  execute_now(call);
  if (sample(data, bytes) != before) {
    throw Error(ErrorKind::kModel,
                "node " + in_quotes(node.name) + ": the function " + in_quotes(node.function) +
                    " does more than its name says, which is to concatenate",
                "run with the compiler's memory plan (--no-plan-memory)");
  }
  call.checked = true;
}

void NodeCalls::execute_now(const Call& call) {
  if (call.ffi != nullptr) {
    FfiAny result;
    const FfiValue* arguments = ffi_values_.data() + call.first_argument;
    if (call.ffi(nullptr, arguments, call.num_arguments, &result) != 0) [[unlikely]] {
      throw_failure(call);
    }
    return;
  }
  PackedValue* arguments = values_.data() + call.first_argument;
  if (call.interpreted) {
    interpret(model_.graph.nodes[call.node]);
    return;
  }
  if (call.function == nullptr) {
    const GraphNode& node = model_.graph.nodes[call.node];
    entries_.copy(node.inputs[0], node.first_output);
    return;
  }
  PackedValue result{};
  int result_type_code = kTypeNull;
  const int status = call.function(arguments, type_codes_.data() + call.first_argument,
                                   call.num_arguments, &result, &result_type_code, nullptr);
  if (status != 0) [[unlikely]]
    throw_failure(call);
}

void NodeCalls::interpret(const GraphNode& node) {
  if (model_.failure != nullptr) std::rethrow_exception(model_.failure);
  std::vector<Tensor> inputs;
  inputs.reserve(node.inputs.size());
  for (const std::size_t entry : node.inputs) inputs.push_back(entries_.tensor(entry));
  model_.interpreter->run(inputs);
}

void NodeCalls::throw_missing(const GraphNode& node) const {
  throw Error(ErrorKind::kMismatch,
              "the graph calls the function " + in_quotes(node.function) + ", which library " +
                  path_in_quotes(model_.module->path()) + " does not have",
              "check that the library and the graph come from the same compilation");
}

void NodeCalls::throw_failure(const Call& call) const {
  const GraphNode& node = model_.graph.nodes[call.node];
  throw Error(last_packed_error_kind(), "node " + in_quotes(node.name) + " (function " +
                                            in_quotes(node.function) +
                                            ") failed: " + last_packed_error());
}

}  // namespace run_model
