// Runs a function of a Relax executable as the virtual machine does: for models whose course
// depends on the values of a run, and for those that are compiled as a whole.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <run_model/tensor.h>
#include "runtime/loading/model_library.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/input_forms.h"
#include "runtime/relax/machine.h"

namespace run_model {

class RelaxInterpreter {
 public:
  // All must outlive the interpreter. `forms` are the function's. Throws as RelaxMachine does.
  RelaxInterpreter(const RelaxExecutable& executable, const RelaxFunction& function,
                   const std::vector<RelaxInput>& forms, const ModelLibrary& library);

  // Computes the outputs of these inputs, in the order of the forms.
  void run(std::span<const Tensor> inputs);

  // Of the last run; shapes and numbers among them as tensors of int64 or float64.
  const std::vector<Tensor>& outputs() const { return outputs_; }

  // How they lie in tuples, as Graph::output_tuples.
  const std::vector<std::int64_t>& output_tuples() const { return output_tuples_; }

  const RelaxFunction& function() const { return function_; }

  // Bytes held for tensors and constants.
  std::size_t held_bytes() const { return machine_.held_bytes(); }

 private:
  void add_outputs(const FfiValue& result);

  const RelaxExecutable& executable_;
  const RelaxFunction& function_;
  const std::vector<RelaxInput>& forms_;
  RelaxMachine machine_;
  std::vector<Tensor> outputs_;
  std::vector<std::int64_t> output_tuples_;
};

}  // namespace run_model
