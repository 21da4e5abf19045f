// A function of a Relax executable as what models are made of: one for each shape of its inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include "runtime/loading/model_library.h"
#include "runtime/loading/param_binding.h"
#include "runtime/relax/input_forms.h"
#include "runtime/relax/interpreter.h"

namespace run_model {

struct LoadedModel;

class RelaxSource : public std::enable_shared_from_this<RelaxSource> {
 public:
  // `library` holds an executable. `function` is the name of one of its functions; empty for
  // "main". `arrays` are parameters that were kept apart: by the names of the function's
  // parameters, or as p_0, p_1 … the last of them. Throws Error(kMismatch) for a function or an
  // array that there is not, Error(kIncompatible) where nothing tells what an input is, neither the
  // function nor `given_inputs`, as in ExecutorOptions.
  RelaxSource(std::shared_ptr<Module> library, const std::string& function,
              const std::vector<NamedArray>& arrays,
              const std::function<std::vector<TensorInfo>()>& given_inputs = {});

  // All that the function takes, parameters among them, in its order.
  const std::vector<RelaxInput>& inputs() const { return inputs_; }

  // The shapes with each symbol's dimension taken as 1.
  std::vector<std::vector<std::int64_t>> least_shapes() const;

  // Empty where the shapes fit the inputs and each other; otherwise a sentence.
  std::string misfit(const std::vector<std::vector<std::int64_t>>& shapes) const;

  // The model for inputs of these shapes, which fit. Throws as trace_function() does, but what is
  // not traceable is interpreted, and where shapes may vary, those that the function itself does
  // not take are the model's failure.
  LoadedModel model_for(const std::vector<std::vector<std::int64_t>>& shapes);

 private:
  void take_form(RelaxInput& input, DLDataType dtype, std::vector<RelaxDimension> dims) const;
  void take_arrays(const std::vector<NamedArray>& arrays);
  void bind_constants(LoadedModel& model, const std::vector<Param>& constants);
  void bind_arrays(LoadedModel& model) const;

  std::shared_ptr<Module> module_;
  const ModelLibrary& library_;
  std::shared_ptr<const RelaxExecutable> executable_;
  std::string source_;
  const RelaxFunction& function_;
  std::vector<RelaxInput> inputs_;
  std::vector<Tensor> arrays_;  // by input; undefined where it is none
  std::map<std::string, BoundParam> constants_;
  std::size_t constant_bytes_in_place_ = 0;
  std::size_t constant_bytes_copied_ = 0;
  std::shared_ptr<RelaxInterpreter> interpreter_;
};

}  // namespace run_model
