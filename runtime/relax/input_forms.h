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

  bool is_static() const;
};

// The tensors that the function takes. Throws Error(kIncompatible) for a parameter that is none, or
// whose form nothing tells.
std::vector<RelaxInput> input_forms(const RelaxExecutable& executable,
                                    const RelaxFunction& function);

// "float32 [rows, 12]"
std::string form_name(const RelaxInput& input);

}  // namespace run_model
