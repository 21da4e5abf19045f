// Looks into a graph while it runs, for profilers and for finding where a result goes wrong.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/graph.h>
#include <run_model/graph_executor.h>

namespace run_model {

// One executable node in running order.
struct NodeInfo {
  std::string name;      // the graph's node name
  std::string function;  // the compiled function, or "__nop" / "__copy"
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  // A concatenation whose inputs are written to where its output lies: running it takes no time.
  bool joined = false;
  std::string device{};  // "opencl:0"; empty for the CPU
};

// A GraphExecutor that also gives its graph, each node and each tensor, parameters among them. It
// runs as fast as one.
class DebugExecutor : public GraphExecutor {
 public:
  // As GraphExecutor's.
  explicit DebugExecutor(const ModelFiles& files, const ExecutorOptions& options = {});
  explicit DebugExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options = {},
                         const std::vector<NamedArray>& arrays = {});
  DebugExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                const ExecutorOptions& options = {});

  // The graph as it was read: nodes()[i] is its i-th node that is no input.
  const Graph& graph() const;

  // How outputs() lie in tuples, as Graph::output_tuples; of a model whose course depends on its
  // inputs, those of the last run.
  const std::vector<std::int64_t>& output_tuples() const;

  // The executable nodes in running order. run_node(i) runs just the i-th, on the storage as it
  // stands: run_node over all i equals run(). An index beyond them throws std::out_of_range.
  const std::vector<NodeInfo>& nodes() const;
  void run_node(std::size_t index);

  // As run_node. Seconds of the device's own time for a node that computes on a GPU, nothing for
  // others.
  std::optional<double> run_node_timed(std::size_t index);

  // What the i-th node wrote as its `output`-th output; meaningful right after run_node(index),
  // before later nodes reuse the storage. Throws Error(kUsage) for an output that it has not.
  Tensor node_output(std::size_t index, std::size_t output) const;

  // Inputs and parameters together, in the order in which the graph lists them: what TVM calls a
  // graph's inputs. argument_index() gives nothing for a name that is none of them; an index beyond
  // them throws std::out_of_range.
  const std::vector<TensorInfo>& arguments() const;
  std::optional<std::size_t> argument_index(std::string_view name) const;

  // The memory that the model reads argument `index` from, to be read and written in place; counts
  // as set. A parameter that lies in a mapped file or library is copied to memory of its own first.
  Tensor argument(std::size_t index);

  // As for inputs, but that set_argument writes to the memory that argument() gives.
  void set_argument(std::size_t index, const Tensor& tensor);
  void set_argument_zero_copy(std::size_t index, const Tensor& tensor);

  // Copies each parameter in the bytes of a parameter file to the argument of its name; names that
  // the graph does not have are left out, as TVM does. `source` names the bytes in errors. Throws
  // Error(kFormat) for bytes that are no parameter file, Error(kMismatch) for a parameter of
  // another shape or element type than the graph's; nothing is set then.
  void load_params(std::span<const std::byte> bytes, const std::string& source);

 private:
  mutable std::vector<NodeInfo> nodes_;
  mutable std::size_t generation_ = 0;  // of the model that nodes_ are of
};

}  // namespace run_model
