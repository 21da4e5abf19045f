// Turns one course through an executable, for inputs of given shapes, into a graph: the calls of
// compiled functions in their order, on tensors without the virtual machine's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <run_model/graph.h>
#include "runtime/loading/params_file.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/values.h"

namespace run_model {

struct RelaxTrace {
  Graph graph;
  // The executable's constants that the graph reads, each under the name of its input.
  std::vector<Param> constants;
};

class Tracer {
 public:
  explicit Tracer(const RelaxExecutable& executable) : executable_(executable) {}

  FfiValue argument(const std::string& name, std::span<const std::int64_t> shape, DLDataType dtype);
  FfiValue constant(std::size_t number);

  // Tensors of one storage are not needed at the same time, if they begin where it does.
  FfiValue storage(std::size_t bytes);
  FfiValue tensor(const FfiStorageObject& storage, std::size_t offset,
                  std::span<const std::int64_t> shape, DLDataType dtype);
  FfiValue reshaped(const FfiTensorObject& tensor, std::span<const std::int64_t> shape);

  // The values of a constant; null for other tensors.
  const void* constant_values(const FfiTensorObject& tensor) const;

  // A tensor that nobody has written yet is written by the first function that is given it.
  void call(const std::string& function, std::span<const FfiAny> arguments);

  // A function of the executable is called by another one.
  void enter(const std::string& function);

  // The graph that computes `result`, a tensor or tuples of them. Throws NotTraceable for another
  // value, Error(kFormat) for a tensor that nobody has written.
  RelaxTrace finish(const FfiAny& result);

 private:
  struct Traced {
    GraphEntry entry;
    std::size_t number = kUnwritten;  // of the entry in the graph
    std::size_t constant = kUnwritten;
  };
  static constexpr std::size_t kUnwritten = static_cast<std::size_t>(-1);

  FfiValue add(std::span<const std::int64_t> shape, DLDataType dtype, std::size_t storage);
  GraphNode& add_node(const std::string& name, NodeKind kind);
  void write(Traced& traced, GraphNode& node);
  Traced& traced_of(const FfiTensorObject& tensor) { return traced_[tensor.traced]; }
  std::size_t entry_of(const FfiTensorObject& tensor);
  std::string unused_name(const std::string& wanted);
  void add_outputs(const FfiAny& result);

  const RelaxExecutable& executable_;
  RelaxTrace trace_;
  std::vector<Traced> traced_;
  std::unordered_map<std::size_t, FfiValue> constants_;
  std::unordered_map<std::string, std::size_t> names_;
};

}  // namespace run_model
