#include <run_model/graph.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include <run_model/error.h>
#include "base/json.h"
#include "base/text.h"
#include "runtime/devices/device_name.h"

namespace run_model {
namespace {

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxGraphDimensions = 32;

// Attributes of a node are strings, numbers too.
std::int64_t number_in_string(const JsonField& field, std::int64_t max) {
  const std::string& text = field.string();
  const auto value = whole_number<std::int64_t>(text);
  if (!value || *value < 0 || *value > max) {
    field.fail("is " + in_quotes(text) + ", expected a number up to " + std::to_string(max));
  }
  return *value;
}

// Graph-wide attributes are pairs of a type name and the list itself.
JsonField typed_list(const JsonField& attrs, std::string_view key, std::string_view type) {
  JsonField pair = attrs.member(key);
  if (pair.array_size() != 2 || pair.at(0).string() != type) {
    pair.fail("is no pair of " + in_quotes(type) + " and a list");
  }
  return pair.at(1);
}

class GraphParser {
 public:
  explicit GraphParser(const JsonField& root) : root_(root) {}

  Graph parse() {
    if (!root_.has("nodes") || !root_.has("heads")) {
      root_.fail("is no graph of TVM's graph executor: it lacks 'nodes' or 'heads'");
    }
    parse_nodes();
    parse_entries();
    check_nodes();
    parse_inputs();
    parse_outputs();
    return std::move(graph_);
  }

 private:
  void parse_nodes() {
    JsonField nodes = root_.member("nodes");
    JsonField row_ptr = root_.member("node_row_ptr");
    std::size_t count = nodes.array_size();
    if (row_ptr.array_size() != count + 1) {
      row_ptr.fail("has " + std::to_string(row_ptr.array_size()) + " elements, expected " +
                   std::to_string(count + 1));
    }
    if (row_ptr.at(0).integer(0, kMaxIndex) != 0) row_ptr.fail("does not start with 0");
    graph_.nodes.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      GraphNode node = parse_node(nodes.at(i));
      node.first_output = static_cast<std::size_t>(row_ptr.at(i).integer(0, kMaxIndex));
      std::int64_t end = row_ptr.at(i + 1).integer(0, kMaxIndex);
      if (end != static_cast<std::int64_t>(node.first_output + node.num_outputs)) {
        row_ptr.at(i + 1).fail("is " + std::to_string(end) + ", but node " + in_quotes(node.name) +
                               " has " + std::to_string(node.num_outputs) + " outputs");
      }
      graph_.nodes.push_back(std::move(node));
    }
  }

  GraphNode parse_node(const JsonField& field) {
    GraphNode node;
    node.name = field.member("name").string();
    const std::string& op = field.member("op").string();
    JsonField inputs = field.member("inputs");
    std::size_t num_inputs = inputs.array_size();
    for (std::size_t i = 0; i < num_inputs; ++i) {
      node.inputs.push_back(parse_reference(inputs.at(i)));
    }
    if (op == "null") {
      if (num_inputs != 0) inputs.fail("is not empty, although the node is an input");
      return node;
    }
    if (op != "tvm_op") {
      field.member("op").fail("is " + in_quotes(op) + ", expected 'null' or 'tvm_op'");
    }
    JsonField attrs = field.has("attr") ? field.member("attr") : field.member("attrs");
    node.function = attrs.member("func_name").string();
    node.kind = node.function == "__nop"    ? NodeKind::kNop
                : node.function == "__copy" ? NodeKind::kCopy
                                            : NodeKind::kFunction;
    JsonField declared = attrs.member("num_inputs");
    if (number_in_string(declared, kMaxIndex) != static_cast<std::int64_t>(num_inputs)) {
      declared.fail("is " + in_quotes(declared.string()) + ", but the node lists " +
                    std::to_string(num_inputs) + " inputs");
    }
    node.num_outputs =
        static_cast<std::size_t>(number_in_string(attrs.member("num_outputs"), kMaxIndex));
    node.flatten = number_in_string(attrs.member("flatten_data"), 1) == 1;
    if (attrs.has("multiply_adds")) node.multiply_adds = attrs.member("multiply_adds").string();
    if (attrs.has("kernel")) node.kernel = attrs.member("kernel").string();
    if (attrs.has("onnx_nodes")) node.onnx_nodes = attrs.member("onnx_nodes").string();
    for (const std::string& key : attrs.keys()) {
      if (key == "hash" || key.find("layout") != std::string::npos) {
        node.labels.emplace_back(key, attrs.member(key).string());
      }
    }
    return node;
  }

  // A reference [node, output] or [node, output, version] to a node that has been parsed already.
  std::size_t parse_reference(const JsonField& field) {
    std::size_t size = field.array_size();
    if (size != 2 && size != 3) field.fail("is no pair of a node and an output");
    if (graph_.nodes.empty()) field.fail("refers to a node that does not come earlier");
    std::int64_t last = static_cast<std::int64_t>(graph_.nodes.size()) - 1;
    const GraphNode& node = graph_.nodes[static_cast<std::size_t>(field.at(0).integer(0, last))];
    if (node.num_outputs == 0) field.fail("refers to a node without outputs");
    std::int64_t output = field.at(1).integer(0, static_cast<std::int64_t>(node.num_outputs) - 1);
    return node.first_output + static_cast<std::size_t>(output);
  }

  void parse_entries() {
    std::size_t count = 0;
    if (!graph_.nodes.empty()) {
      count = graph_.nodes.back().first_output + graph_.nodes.back().num_outputs;
    }
    JsonField attrs = root_.member("attrs");
    JsonField shapes = sized(typed_list(attrs, "shape", "list_shape"), count);
    JsonField dtypes = sized(typed_list(attrs, "dltype", "list_str"), count);
    JsonField storages = sized(typed_list(attrs, "storage_id", "list_int"), count);
    const std::vector<DLDeviceType> devices = parse_placement(attrs, count);
    graph_.entries.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      GraphEntry entry;
      entry.shape = parse_shape(shapes.at(i));
      try {
        entry.dtype = parse_dtype(dtypes.at(i).string());
        entry.bytes = tensor_bytes(entry.shape, entry.dtype);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kIncompatible) throw;
        dtypes.at(i).fail(std::string("cannot be used: ") + error.what());
      }
      // The planner numbers storages without gaps beyond what the entries need.
      entry.storage =
          static_cast<std::size_t>(storages.at(i).integer(0, static_cast<std::int64_t>(count) - 1));
      graph_.num_storages = std::max(graph_.num_storages, entry.storage + 1);
      entry.device = devices[i];
      graph_.entries.push_back(std::move(entry));
    }
    check_storages(storages);
  }

  void check_storages(const JsonField& storages) const {
    std::vector<const GraphEntry*> first(graph_.num_storages, nullptr);
    for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
      const GraphEntry& entry = graph_.entries[i];
      const GraphEntry*& other = first[entry.storage];
      if (other == nullptr) other = &entry;
      if (other->device != entry.device) {
        storages.at(i).fail("is " + std::to_string(entry.storage) + ", which is on " +
                            device_name({other->device, 0}) + " and on " +
                            device_name({entry.device, 0}));
      }
    }
  }

  static JsonField sized(const JsonField& list, std::size_t count) {
    if (list.array_size() != count) {
      list.fail("has " + std::to_string(list.array_size()) + " elements, but the nodes have " +
                std::to_string(count) + " outputs");
    }
    return list;
  }

  static std::vector<std::int64_t> parse_shape(const JsonField& field) {
    std::size_t ndim = field.array_size();
    if (ndim > kMaxGraphDimensions) field.fail("has " + std::to_string(ndim) + " dimensions");
    std::vector<std::int64_t> shape;
    shape.reserve(ndim);
    for (std::size_t i = 0; i < ndim; ++i) {
      shape.push_back(field.at(i).integer(0, std::numeric_limits<std::int64_t>::max()));
    }
    return shape;
  }

  // Graphs for one device may omit the device.
  std::vector<DLDeviceType> parse_placement(const JsonField& attrs, std::size_t count) {
    std::vector<DLDeviceType> placement(count, kDLCPU);
    if (attrs.has("device_index")) {
      graph_.says_devices = true;
      JsonField devices = sized(typed_list(attrs, "device_index", "list_int"), count);
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t device = devices.at(i).integer(INT32_MIN, INT32_MAX);
        if (!device_type_name(device)) {
          refuse_placement(devices.at(i), "device type " + std::to_string(device));
        }
        placement[i] = static_cast<DLDeviceType>(device);
      }
    }
    if (attrs.has("storage_scope")) {
      JsonField scopes = sized(typed_list(attrs, "storage_scope", "list_str"), count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::string& scope = scopes.at(i).string();
        if (!scope.empty() && scope != "global") {
          refuse_placement(scopes.at(i), "memory of scope " + in_quotes(scope));
        }
      }
    }
    return placement;
  }

  [[noreturn]] static void refuse_placement(const JsonField& field, const std::string& where) {
    try {
      field.fail("places a tensor on " + where +
                 ", but this runtime knows plain memory of the CPU, CUDA, OpenCL and Vulkan");
    } catch (const Error& error) {
      throw Error(ErrorKind::kIncompatible, error.what());
    }
  }

  void check_nodes() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (node.kind != NodeKind::kNop && node.kind != NodeKind::kCopy) continue;
      JsonField field = root_.member("nodes").at(i);
      if (node.inputs.size() != 1 || node.num_outputs != 1) {
        field.fail("is " + in_quotes(node.function) + ", which has one input and one output");
      }
      if (graph_.entries[node.inputs[0]].bytes != graph_.entries[node.first_output].bytes) {
        field.fail("is " + in_quotes(node.function) + ", but its input and output differ in size");
      }
    }
  }

  void parse_inputs() {
    JsonField list = root_.member("arg_nodes");
    std::unordered_set<std::string> names;
    std::int64_t last = static_cast<std::int64_t>(graph_.nodes.size()) - 1;
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      auto index = static_cast<std::size_t>(list.at(i).integer(0, last));
      const GraphNode& node = graph_.nodes[index];
      if (node.kind != NodeKind::kInput) {
        list.at(i).fail("is node " + in_quotes(node.name) + ", which is no input");
      }
      if (!names.insert(node.name).second) {
        list.at(i).fail("is a second input named " + in_quotes(node.name));
      }
      graph_.inputs.push_back(index);
    }
    for (const GraphNode& node : graph_.nodes) {
      if (node.kind == NodeKind::kInput && !names.contains(node.name)) {
        list.fail("does not list the input " + in_quotes(node.name));
      }
    }
  }

  void parse_outputs() {
    JsonField heads = root_.member("heads");
    for (std::size_t i = 0; i < heads.array_size(); ++i) {
      graph_.outputs.push_back(parse_reference(heads.at(i)));
    }
    if (graph_.outputs.empty()) heads.fail("is empty: the graph has no outputs");
    if (root_.member("attrs").has("counted_outputs")) parse_row_counts();
  }

  // Ours (compile_model's): for each output the head that counts its rows, or -1, and their axis.
  // The heads behind the outputs are such counts.
  void parse_row_counts() {
    JsonField pairs = typed_list(root_.member("attrs"), "counted_outputs", "list_int");
    const std::size_t count = pairs.array_size() / 2;
    if (pairs.array_size() % 2 != 0 || count == 0 || count > graph_.outputs.size()) {
      pairs.fail("has " + std::to_string(pairs.array_size()) +
                 " elements, expected two for each output");
    }
    const auto last = static_cast<std::int64_t>(graph_.outputs.size()) - 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t head = pairs.at(2 * i).integer(-1, last);
      if (head < 0) {
        graph_.row_counts.emplace_back();
        continue;
      }
      const auto& shape = graph_.entries[graph_.outputs[i]].shape;
      const RowCount rows{graph_.outputs[static_cast<std::size_t>(head)],
                          static_cast<std::size_t>(pairs.at(2 * i + 1).integer(
                              0, static_cast<std::int64_t>(shape.size()) - 1))};
      const GraphEntry& counting = graph_.entries[rows.entry];
      if (counting.bytes != sizeof(std::int64_t) || !same_dtype(counting.dtype, {kDLInt, 64, 1})) {
        pairs.at(2 * i).fail("is a head that is no single int64");
      }
      graph_.row_counts.emplace_back(rows);
    }
  }

  JsonField root_;
  Graph graph_;
};

}  // namespace

Graph parse_graph(std::string_view json, const std::string& source) {
  const JsonDocument document(json, source);
  return GraphParser(document.root()).parse();
}

}  // namespace run_model
