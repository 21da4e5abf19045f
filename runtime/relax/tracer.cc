#include "runtime/relax/tracer.h"

#include <algorithm>
#include <utility>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/relax/machine.h"

namespace run_model {
namespace {

// run_model's bool for tvm-ffi's.
DLDataType plain_dtype(DLDataType dtype) {
  return same_dtype(dtype, kFfiBoolType) ? DLDataType{kDLUInt, 1, 1} : dtype;
}

}  // namespace

FfiValue Tracer::add(std::span<const std::int64_t> shape, DLDataType dtype, std::size_t storage) {
  Traced traced;
  traced.entry.shape.assign(shape.begin(), shape.end());
  traced.entry.dtype = plain_dtype(dtype);
  traced.entry.bytes = tensor_bytes(shape, traced.entry.dtype);
  traced.entry.storage = storage;
  FfiValue value = make_tensor(shape, dtype, nullptr, nullptr);
  as_tensor(value)->traced = traced_.size();
  traced_.push_back(std::move(traced));
  return value;
}

GraphNode& Tracer::add_node(const std::string& name, NodeKind kind) {
  GraphNode& node = trace_.graph.nodes.emplace_back();
  node.name = unused_name(name);
  node.kind = kind;
  node.first_output = trace_.graph.entries.size();
  node.num_outputs = 0;
  return node;
}

// Entries are numbered in the order of the nodes that write them.
void Tracer::write(Traced& traced, GraphNode& node) {
  traced.number = trace_.graph.entries.size();
  trace_.graph.entries.push_back(traced.entry);
  ++node.num_outputs;
}

// TVM calls the same function at several places; names of nodes are unique.
std::string Tracer::unused_name(const std::string& wanted) {
  for (std::string name = wanted;;) {
    const std::size_t used = names_[name]++;
    if (used == 0) return name;
    name = wanted + "_" + std::to_string(names_[wanted] - 1);
  }
}

FfiValue Tracer::argument(const std::string& name, std::span<const std::int64_t> shape,
                          DLDataType dtype) {
  FfiValue value = add(shape, dtype, trace_.graph.num_storages++);
  trace_.graph.inputs.push_back(trace_.graph.nodes.size());
  write(traced_of(*as_tensor(value)), add_node(name, NodeKind::kInput));
  return value;
}

FfiValue Tracer::constant(std::size_t number) {
  const auto& tensor = std::get<Param>(executable_.constants[number]);
  FfiValue& value = constants_[number];
  if (value.type == kFfiNone) {
    value = add(tensor.shape, tensor.dtype, trace_.graph.num_storages++);
    FfiTensorObject& object = *as_tensor(value);
    if (executable_.bool_is_a_type && same_dtype(tensor.dtype, {kDLUInt, 1, 1})) {
      object.tensor.dtype = kFfiBoolType;
    }
    traced_of(object).constant = number;
  }
  return value;
}

const void* Tracer::constant_values(const FfiTensorObject& tensor) const {
  const std::size_t number = traced_[tensor.traced].constant;
  if (number == kUnwritten) return nullptr;
  return std::get<Param>(executable_.constants[number]).data.data();
}

FfiValue Tracer::storage(std::size_t bytes) {
  return make_storage(nullptr, bytes, trace_.graph.num_storages++);
}

FfiValue Tracer::tensor(const FfiStorageObject& storage, std::size_t offset,
                        std::span<const std::int64_t> shape, DLDataType dtype) {
  // Those that begin further on may be needed together with others of their storage.
  return add(shape, dtype, offset == 0 ? storage.number : trace_.graph.num_storages++);
}

// The entry that a tensor is; constants become inputs of the graph when they are first read.
std::size_t Tracer::entry_of(const FfiTensorObject& tensor) {
  Traced& traced = traced_of(tensor);
  if (traced.number == kUnwritten && traced.constant != kUnwritten) {
    GraphNode& node = add_node("constant_" + std::to_string(traced.constant), NodeKind::kInput);
    trace_.graph.inputs.push_back(trace_.graph.nodes.size() - 1);
    write(traced, node);
    Param param = std::get<Param>(executable_.constants[traced.constant]);
    param.name = node.name;
    trace_.constants.push_back(std::move(param));
  }
  return traced.number;
}

FfiValue Tracer::reshaped(const FfiTensorObject& tensor, std::span<const std::int64_t> shape) {
  const std::size_t source = entry_of(tensor);
  if (source == kUnwritten) {
    throw Error(ErrorKind::kFormat, "the model reshapes a tensor that nothing has written");
  }
  FfiValue value = add(shape, tensor.tensor.dtype, trace_.graph.entries[source].storage);
  GraphNode& node = add_node("reshape", NodeKind::kNop);
  node.function = "__nop";
  node.inputs.push_back(source);
  write(traced_of(*as_tensor(value)), node);
  return value;
}

void Tracer::call(const std::string& function, std::span<const FfiAny> arguments) {
  // Constants come before the node that reads them.
  for (const FfiAny& argument : arguments) {
    const FfiTensorObject* tensor = as_tensor(argument);
    if (tensor == nullptr) continue;
    if (tensor->has_values()) {
      throw NotTraceable("function " + in_quotes(function) + " is given shapes and tensors");
    }
    entry_of(*tensor);
  }
  GraphNode& node = add_node(function, NodeKind::kFunction);
  node.function = function;
  bool plain = true;  // first what it reads, then what it writes, and nothing else
  std::vector<NodeArgument> in_order;
  for (const FfiAny& argument : arguments) {
    const FfiTensorObject* tensor = as_tensor(argument);
    NodeArgument described;
    if (tensor != nullptr) {
      Traced& traced = traced_of(*tensor);
      if (traced.number == kUnwritten) {
        write(traced, node);
      } else if (traced.number >= node.first_output) {
        plain = false;  // the same tensor twice
      } else {
        plain = plain && node.num_outputs == 0;
        node.inputs.push_back(traced.number);
      }
      described.value = GraphTensor{traced.number};
    } else {
      plain = false;
      switch (argument.type) {
        case kFfiInt:
          described.value = argument.integer;
          break;
        case kFfiBool:
          described.value = argument.integer != 0;
          break;
        case kFfiFloat:
          described.value = argument.real;
          break;
        case kFfiDataType:
          described.value = argument.dtype;
          break;
        case kFfiText:
        case kFfiSmallText:
          described.value = text_of(argument);
          break;
        default:
          throw NotTraceable("function " + in_quotes(function) + " is given " +
                             std::string(ffi_type_name(argument)));
      }
    }
    in_order.push_back(std::move(described));
  }
  if (!plain) node.arguments = std::move(in_order);
}

void Tracer::enter(const std::string& function) {
  std::vector<std::string>& known = trace_.graph.functions;
  if (std::find(known.begin(), known.end(), function) == known.end()) known.push_back(function);
}

void Tracer::add_outputs(const FfiAny& result) {
  if (const FfiTensorObject* tensor = as_tensor(result)) {
    if (tensor->has_values()) throw NotTraceable("the model gives a shape");
    const std::size_t entry = entry_of(*tensor);
    if (entry == kUnwritten) {
      throw Error(ErrorKind::kFormat, "the model gives a tensor that nothing has written");
    }
    trace_.graph.outputs.push_back(entry);
    trace_.graph.output_tuples.push_back(-1);
    return;
  }
  const FfiArrayObject* array = as_array(result);
  if (array == nullptr) {
    throw NotTraceable("the model gives " + std::string(ffi_type_name(result)));
  }
  trace_.graph.output_tuples.push_back(array->size);
  for (const FfiValue& item : array->items) add_outputs(item);
}

RelaxTrace Tracer::finish(const FfiAny& result) {
  add_outputs(result);
  if (trace_.graph.outputs.empty()) {
    throw Error(ErrorKind::kFormat, "the model gives no tensor");
  }
  return std::move(trace_);
}

}  // namespace run_model
