// What a function of a Relax executable takes: read from the checks that it begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include "runtime/relax/executable.h"
#include "runtime/relax/values.h"

namespace run_model {

// One dimension: a number, or a symbol that stands for the same number wherever it is used.
struct RelaxDimension {
  std::int64_t number = -1;  // -1 where it is a symbol, or may be anything
  std::string symbol;        // empty where it is a number, or may be anything
};

// What a caller's tensor becomes: itself, a shape of its numbers, or its one number.
enum class RelaxInputKind { kTensor, kShape, kNumber };

struct RelaxInput {
  std::string name;  // of the parameter; of an item of a tuple "pair.0", "pair.1.0"
  DLDataType dtype{};
  std::vector<RelaxDimension> dims;
  bool known = false;  // false: nothing tells what it is
  RelaxInputKind kind = RelaxInputKind::kTensor;
  std::size_t parameter = 0;      // which of the function's it is, or is in,
  std::vector<std::size_t> path;  // and where in that tuple

  bool is_static() const;
};

bool all_static(std::span<const RelaxInput> inputs);

// All that the function takes, tuples as the tensors in them.
std::vector<RelaxInput> input_forms(const RelaxExecutable& executable,
                                    const RelaxFunction& function);

// The function's arguments: `values` are those of `inputs`, and are put into tuples.
std::vector<FfiValue> arguments_of(const std::vector<RelaxInput>& inputs,
                                   std::vector<FfiValue> values);

// Empty where a tensor of that type and shape can be the input, symbols aside; otherwise a
// sentence.
std::string misfit_of_input(const RelaxInput& input, DLDataType dtype,
                            std::span<const std::int64_t> shape);

// "float32 [rows, 12]"
std::string form_name(const RelaxInput& input);

}  // namespace run_model
