// Runs a compiled graph: the replacement of TVM's graph executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/device_tensor.h>
#include <run_model/module.h>
#include <run_model/tensor.h>
#include <run_model/thread_pool.h>

namespace run_model {

// What one input or output of the graph is.
struct TensorInfo {
  std::string name;  // outputs of TVM graphs have no name of their own: "output_0", "output_1" …
  std::vector<std::int64_t> shape;
  DLDataType dtype{};
  // For inputs whose shape is not fixed: the name of each dimension that may be any number, the
  // same wherever the name is used, and an empty one for the others. `shape` is then what the input
  // has at present, 1 for such dimensions unless another tensor was set. Empty where all are fixed.
  std::vector<std::string> symbols{};
};

// Bytes that the executor itself holds.
struct MemoryAccount {
  std::size_t params_mapped = 0;  // parameters used in place in the mapped file or library
  std::size_t params_copied = 0;  // parameters copied to aligned storage
  std::size_t activations = 0;    // storage for inputs, intermediates and outputs
  // The same on devices, and scratch memory of functions there, which all executors share.
  std::size_t device_params = 0;
  std::size_t device_activations = 0;
  std::size_t device_workspaces = 0;
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
  // Which function of a library of TVM 0.21 and later. Empty: "main".
  std::string function{};
  // Asked, where that function does not say of all its inputs what they are, for what those will be
  // that are given. Unset: such a function is refused.
  std::function<std::vector<TensorInfo>()> given_inputs{};
  // Which GPU for a model that was compiled for that kind of them: the device_id of each
  // device_type, 0 where none is given.
  std::vector<DLDevice> devices{};
};

// A parameter that was read already.
struct NamedArray {
  std::string name;
  Tensor tensor;
};

// Where a model's pieces are. `graph` and `params` stay empty for a single-file library.
struct ModelFiles {
  std::filesystem::path library;
  std::filesystem::path graph{};
  std::filesystem::path params{};
  // Parameters of a library of TVM 0.21 and later that are kept apart: by the names of the
  // function's parameters, or as p_0, p_1 … the last of them.
  std::vector<NamedArray> arrays{};
};

// Parameters, nodes and the graph itself are DebugExecutor's (debug_executor.h).
//
// Not safe to use from two threads at once; two executors are independent of each other.
// An index beyond inputs() or outputs() throws std::out_of_range.
class GraphExecutor {
 public:
  // Loads and cross-checks the pieces; nothing is run. Throws Error(kFile | kFormat | kIncompatible
  // | kMismatch).
  explicit GraphExecutor(const ModelFiles& files, const ExecutorOptions& options = {});

  // The same of a library that is loaded already: of the graph in a single-file export, or of
  // `graph_json`. There are parameters where the graph is the one in the library; else all that the
  // graph takes is an input. `arrays` as in ModelFiles.
  explicit GraphExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options = {},
                         const std::vector<NamedArray>& arrays = {});
  GraphExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                const ExecutorOptions& options = {});
  ~GraphExecutor();
  GraphExecutor(GraphExecutor&&) noexcept;
  GraphExecutor& operator=(GraphExecutor&&) noexcept;

  // Inputs that the caller has to set (the graph's inputs without the parameters), and outputs.
  // What the outputs of a model are whose course depends on its inputs shows when it runs: where
  // outputs() is asked for before the first run, it is run on zeros.
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;

  // Position in inputs(). Throws Error(kMismatch) listing the names there are.
  std::size_t input_index(std::string_view name) const;

  // Copies `tensor` into input `index`. Shape and element type must be equal to inputs()[index],
  // dimensions with a symbol aside, else Error(kMismatch). Another number for a symbol gives the
  // model new tensors: those that were given before, input() and output() among them, are not its
  // own any more. Whether all inputs agree about a symbol is seen by run().
  void set_input(std::size_t index, const Tensor& tensor);
  void set_input(std::string_view name, const Tensor& tensor);

  // As set_input, without the copy: the model reads `tensor` itself, which must be aligned to
  // kTensorAlignment (Tensor::empty is), and sees later changes of its bytes.
  void set_input_zero_copy(std::size_t index, const Tensor& tensor);

  // The same with memory of the GPU that the input lies on, which the executor keeps. Throws
  // Error(kMismatch) where it lies elsewhere.
  void set_input_zero_copy(std::size_t index, const DeviceTensor& tensor);

  // The executor's own storage of an input, to be written in place; counts as set.
  Tensor input(std::size_t index);

  // The model writes output `index` straight into `tensor` from the next run on (same shape, type
  // and alignment rules as for inputs). Throws Error(kMismatch) too where the output is itself an
  // input or a parameter, or the same tensor as another output that was given other memory.
  void set_output_zero_copy(std::size_t index, const Tensor& tensor);

  // The same with memory of the GPU that the output lies on: nothing is copied to the host until
  // output() asks for it. run() throws Error(kMismatch) where it overlaps what an input is read
  // from or another output is written to; for a state that a network hands on to itself, give two
  // tensors in turns.
  void set_output_zero_copy(std::size_t index, const DeviceTensor& tensor);

  // The output's storage: valid until the next run overwrites it; clone() to keep it. Where only a
  // run tells how many rows there are (Graph::row_counts), it has these, and outputs() says how
  // many there can be. Throws what the last run threw where that failed, and Error(kModel) for a
  // number of rows that there cannot be.
  Tensor output(std::size_t index) const;

  // The pool for later runs. Null: the process-wide one.
  void set_threads(std::shared_ptr<ThreadPool> threads);

  // Runs every node. Throws Error(kMismatch) naming the inputs that were never set or contradict
  // each other, Error(kModel) when a compiled function reports failure.
  void run();

  // run() in two halves, for models that compute on a GPU: run_async() hands the work to it and
  // returns while it computes, wait() returns when all is done and outputs are there. Nothing else
  // of the executor may be called in between. What fails on the way may show in either. On the CPU
  // run_async() does it all.
  void run_async();
  void wait();

  MemoryAccount memory() const;

  // The GPUs that the model computes on, "opencl:0 (NVIDIA …)"; empty where that is the CPU.
  std::vector<std::string> devices() const;

 protected:
  class Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model
