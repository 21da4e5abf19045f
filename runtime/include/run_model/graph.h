// The graph file: which compiled functions run in which order on which storage.
// Format read from TVM's graph_executor.h (v0.18.0) and graphs written by 0.7 … 0.18.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <run_model/dtype.h>

namespace run_model {

// One tensor of the graph: an output of a node. Entries are numbered over all nodes in order.
struct GraphEntry {
  std::vector<std::int64_t> shape;
  DLDataType dtype{};
  std::size_t bytes = 0;         // of a dense tensor of that shape and type
  std::size_t storage = 0;       // entries with the same number share memory at different times
  DLDeviceType device = kDLCPU;  // whose memory it lies in: the CPU's, CUDA's, OpenCL's, Vulkan's
};

enum class NodeKind {
  kInput,     // "null": an input or a parameter
  kFunction,  // calls a compiled function
  kNop,       // "__nop": the output is the input under another shape
  kCopy,      // "__copy": the output is a copy of the input
  kMachine,   // a whole function that is interpreted; what it gives are the model's outputs
};

// A tensor as an argument: the number of its entry.
struct GraphTensor {
  std::size_t entry = 0;
};

// What a function is given: a tensor, or a value of another kind.
struct NodeArgument {
  std::variant<GraphTensor, std::int64_t, bool, double, DLDataType, std::string> value;
};

struct GraphNode {
  std::string name;
  NodeKind kind = NodeKind::kInput;
  std::string function;             // empty for inputs
  std::vector<std::size_t> inputs;  // entries, all of them of earlier nodes
  std::size_t first_output = 0;     // entries [first_output, first_output + num_outputs)
  std::size_t num_outputs = 1;
  bool flatten = false;  // the function takes every tensor as one-dimensional
  // All that the function takes, in its order; empty where that is the inputs and then the outputs.
  std::vector<NodeArgument> arguments;
  // What the compiler says of the function, for reports. Only known to be text; empty where it says
  // nothing.
  std::string multiply_adds;  // of the layer's definition, as a decimal number
  std::string kernel;         // which kernel with which parameters, as JSON
  std::string onnx_nodes;     // names of the ONNX file's nodes that it computes, as a JSON list
  // The compiler's "hash" of the function, and what it names a layout ("data_layout": "NCHW").
  std::vector<std::pair<std::string, std::string>> labels;
};

// Says of an output how many of its rows are results: those behind them are zeros.
struct RowCount {
  std::size_t entry = 0;  // int64, of one element
  std::size_t axis = 0;   // along which the rows lie
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEntry> entries;
  std::vector<std::size_t> inputs;   // nodes of kind kInput in the order of the model's arguments
  std::vector<std::size_t> outputs;  // entries
  // Of each output, where only the run time knows how many rows it has. Empty where that is none.
  std::vector<std::optional<RowCount>> row_counts;
  std::size_t num_storages = 0;  // storage numbers are below this
  // How the outputs lie in the tuples that a function of TVM 0.21 and later gives: -1 for an
  // output, for a tuple the number of its fields, which follow. Empty for graphs, which give a
  // list.
  std::vector<std::int64_t> output_tuples;
  // Of a function of TVM 0.21 and later: the executable's other functions that it goes through for
  // these shapes, in their order, each once.
  std::vector<std::string> functions;
  bool says_devices = false;  // else all of it lies where its library computes
};

// Parses and checks a graph. Everything in it is consistent afterwards: indices are in range, nodes
// come after what they read, shapes and sizes fit, names of inputs are unique, entries of one
// storage are on one device. `source` names the text in errors. Throws Error(kFormat), or
// Error(kIncompatible) for a graph that is placed on a device or in memory of another kind.
Graph parse_graph(std::string_view json, const std::string& source);

}  // namespace run_model
