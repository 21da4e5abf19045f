// One function of a Relax executable, called in both ways that TVM's virtual machine knows: with
// its arguments, or on inputs that were set before, whose outputs are asked for later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/module.h>
#include <run_model/rpc/function.h>
#include "runtime/relax/executable.h"
#include "runtime/relax/input_forms.h"

namespace run_model::rpc {

// What a function gives: tensors, which may lie in tuples. Clients that get a tuple can only pass
// it back.
class MachineResult final : public RemoteObject {
 public:
  // `tuples` as Graph::output_tuples.
  MachineResult(std::vector<std::int64_t> tuples, std::vector<Tensor> tensors)
      : tuples_(std::move(tuples)), tensors_(std::move(tensors)) {}

  std::string kind() const override { return "tuple"; }

  // The same with memory of its own.
  MachineResult clone() const;

  // Of what the indices [first, …) of the arguments lead to through the tuples: the number of its
  // fields, -1 for a tensor; and the tensor. Throw Error(kMismatch) for indices that lead nowhere.
  std::int64_t arity(const Arguments& arguments, std::size_t first) const;
  const Tensor& tensor(const Arguments& arguments, std::size_t first) const;

  // The tensor that the result is, if it is no tuple.
  const Tensor* single() const { return tuples_.front() < 0 ? &tensors_.front() : nullptr; }

 private:
  // A part of the result: where it stands in tuples_, and how many tensors come before it.
  struct Place {
    std::size_t node = 0;
    std::size_t tensor = 0;
  };
  Place find(const Arguments& arguments, std::size_t first) const;

  std::vector<std::int64_t> tuples_;
  std::vector<Tensor> tensors_;
};

// Calls and inputs that were set do not see each other.
class MachineFunction {
 public:
  MachineFunction(std::shared_ptr<Module> library, const std::string& name);

  const RelaxFunction& function() const { return function_; }

  // The tensors among the arguments from `first` on, as copies of their own or where the client has
  // them. Throws Error(kMismatch) for another number of them and for other values.
  std::vector<Tensor> tensors(const Arguments& arguments, std::size_t first, bool copies) const;

  void set_inputs(std::vector<Tensor> inputs);
  // Throws Error(kMismatch) where no inputs were set.
  void run_stateful();
  // Of the last run_stateful(); the next run of any kind may write to it. Throws Error(kMismatch)
  // where there was none.
  MachineResult stateful_result() const;

  void run(const std::vector<Tensor>& inputs);
  // Of the last run; the next one writes to it.
  MachineResult result() const;

 private:
  void use(const std::vector<Tensor>& inputs);
  bool fits_unknown(const std::vector<Tensor>& inputs) const;
  void leave_stateful();
  Tensor to_client(const Tensor& tensor) const;

  std::shared_ptr<Module> library_;
  std::shared_ptr<const RelaxExecutable> executable_;
  const RelaxFunction& function_;
  std::vector<RelaxInput> forms_;
  std::optional<DebugExecutor> executor_;
  std::vector<TensorInfo> given_forms_;  // of inputs of which nothing tells what they are
  std::optional<std::vector<Tensor>> inputs_;
  bool has_inputs_ = false;   // the executor has inputs_
  bool has_outputs_ = false;  // the executor has the outputs of the last run_stateful()
  std::optional<MachineResult> stateful_result_;  // where it has not any more
};

}  // namespace run_model::rpc
