// What a function of a Relax executable takes: read from the checks that it begins with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include "runtime/relax/executable.h"

namespace run_model {

// One dimension: a number, or a symbol that stands for the same number wherever it is used.
struct RelaxDimension {
  std::int64_t number = -1;  // -1 where it is a symbol, or may be anything
  std::string symbol;        // empty where it is a number, or may be anything
};

struct RelaxInput {
  std::string name;
  DLDataType dtype{};
  std::vector<RelaxDimension> dims;
  bool known = false;  // false: no tensor, or nothing tells what it is

  bool is_static() const;
};

// All that the function takes.
std::vector<RelaxInput> input_forms(const RelaxExecutable& executable,
                                    const RelaxFunction& function);

// Empty where a tensor of that type and shape can be the input, symbols aside; otherwise a
// sentence.
std::string misfit_of_input(const RelaxInput& input, DLDataType dtype,
                            std::span<const std::int64_t> shape);

// "float32 [rows, 12]"
std::string form_name(const RelaxInput& input);

}  // namespace run_model
