// Runs a compiled graph: the replacement of TVM's graph executor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/module.h>
#include <run_model/tensor.h>
#include <run_model/thread_pool.h>

namespace run_model {

struct Graph;

// What one input or output of the graph is.
struct TensorInfo {
  std::string name;  // outputs of TVM graphs have no name of their own: "output_0", "output_1" …
  std::vector<std::int64_t> shape;
  DLDataType dtype{};
};

// One executable node in running order, for profiling and for locating a wrong result.
struct NodeInfo {
  std::string name;      // the graph's node name
  std::string function;  // the compiled function, or "__nop" / "__copy"
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  // A concatenation whose inputs are written to where its output lies: running it takes no time.
  bool joined = false;
};

// Bytes that the executor itself holds.
struct MemoryAccount {
  std::size_t params_mapped = 0;  // parameters used in place in the mapped file or library
  std::size_t params_copied = 0;  // parameters copied to aligned storage
  std::size_t activations = 0;    // storage for inputs, intermediates and outputs
};

struct ExecutorOptions {
  // Null: the process-wide pool, ThreadPool::shared() at the time of each run.
  std::shared_ptr<ThreadPool> threads{};
  // Called, if set, when the library is loaded and graph and parameters are read, before parameters
  // are bound: for watching what loading costs.
  std::function<void()> on_loaded{};
  // Shares memory between tensors more tightly than the compiler planned, and leaves concatenations
  // that only put tensors behind each other out. False: memory as the compiler assigned it, and
  // every node is run.
  bool plan_memory = true;
  // False: inputs that were never set are zero, and run() does not complain of them.
  bool require_inputs = true;
};

// Where a model's pieces are. `graph` and `params` stay empty for a single-file library.
struct ModelFiles {
  std::filesystem::path library;
  std::filesystem::path graph;
  std::filesystem::path params;
};

// Not safe to use from two threads at once; two executors are independent of each other.
// An index beyond inputs(), outputs() or nodes() throws std::out_of_range.
class GraphExecutor {
 public:
  // Loads and cross-checks the pieces; nothing is run. Throws Error(kFile | kFormat | kIncompatible
  // | kMismatch).
  explicit GraphExecutor(const ModelFiles& files, const ExecutorOptions& options = {});

  // The same of a library that is loaded already: of the graph in a single-file export, or of
  // `graph_json`. There are parameters where the graph is the one in the library; else all that the
  // graph takes is an input.
  explicit GraphExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options = {});
  GraphExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                const ExecutorOptions& options = {});
  ~GraphExecutor();
  GraphExecutor(GraphExecutor&&) noexcept;
  GraphExecutor& operator=(GraphExecutor&&) noexcept;

  // Inputs that the caller has to set (the graph's inputs without the parameters), and outputs.
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;

  // Position in inputs(). Throws Error(kMismatch) listing the names there are.
  std::size_t input_index(std::string_view name) const;

  // Copies `tensor` into input `index`. Shape and element type must be equal to inputs()[index],
  // else Error(kMismatch).
  void set_input(std::size_t index, const Tensor& tensor);
  void set_input(std::string_view name, const Tensor& tensor);

  // As set_input, without the copy: the model reads `tensor` itself, which must be aligned to
  // kTensorAlignment (Tensor::empty is), and sees later changes of its bytes.
  void set_input_zero_copy(std::size_t index, const Tensor& tensor);

  // The executor's own storage of an input, to be written in place; counts as set.
  Tensor input(std::size_t index);

  // Inputs and parameters together, in the order in which the graph lists them: what TVM calls a
  // graph's inputs. argument_index() gives nothing for a name that is none of them.
  const std::vector<TensorInfo>& arguments() const;
  std::optional<std::size_t> argument_index(std::string_view name) const;

  // The memory that the model reads argument `index` from, to be read and written in place; counts
  // as set. A parameter that lies in a mapped file or library is copied to memory of its own first.
  Tensor argument(std::size_t index);

  // As for inputs, but that set_argument writes to the memory that argument() gives.
  void set_argument(std::size_t index, const Tensor& tensor);
  void set_argument_zero_copy(std::size_t index, const Tensor& tensor);

  // The model writes output `index` straight into `tensor` from the next run on (same shape, type
  // and alignment rules as for inputs). Throws Error(kMismatch) too where the output is itself an
  // input, a parameter or shares its storage with something else that is read later.
  void set_output_zero_copy(std::size_t index, const Tensor& tensor);

  // The output's storage: valid until the next run overwrites it; clone() to keep it.
  Tensor output(std::size_t index) const;

  // The pool for later runs. Null: the process-wide one.
  void set_threads(std::shared_ptr<ThreadPool> threads);

  // Runs every node. Throws Error(kMismatch) naming the inputs that were never set, Error(kModel)
  // when a compiled function reports failure.
  void run();

  // The executable nodes in running order. run_node(i) runs just the i-th, on the storage as it
  // stands: run_node over all i equals run().
  const std::vector<NodeInfo>& nodes() const;
  void run_node(std::size_t index);

  // What the i-th node wrote as its `output`-th output; meaningful right after run_node(index),
  // before later nodes reuse the storage.
  Tensor node_output(std::size_t index, std::size_t output) const;

  MemoryAccount memory() const;

  // The graph as it was read (runtime/graph_json.h), for tools that explain it: nodes()[i] is its
  // i-th node that is no input.
  const Graph& graph() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model
