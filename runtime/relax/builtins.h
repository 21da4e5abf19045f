// The functions of the virtual machine itself, by the names under which executables call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/relax/machine.h"
#include "runtime/relax/values.h"

namespace run_model {

// One call of a builtin. The arguments are borrowed.
struct RelaxCall {
  RelaxMachine& machine;
  std::string_view name;
  std::span<const FfiAny> args;
  FfiValue result{};

  // The argument of this number as what the builtin expects. Throw Error(kFormat) where it is
  // missing or something else.
  const FfiAny& at(std::size_t index) const;
  std::int64_t integer(std::size_t index) const;
  std::size_t count(std::size_t index) const;
  DLDataType dtype(std::size_t index) const;
  FfiTensorObject& tensor(std::size_t index) const;
  std::span<const std::int64_t> shape(std::size_t index) const;
  const FfiArrayObject& array(std::size_t index) const;
  // The tensor's values; throws NotTraceable where there are none yet.
  const void* values(std::size_t index) const;
  [[noreturn]] void fail(const std::string& problem) const;
};

using RelaxBuiltin = void (*)(RelaxCall& call);

// Null for a name that is none, or that run_model leaves out.
RelaxBuiltin find_builtin(std::string_view name);

// The same of those that TVM has for operators whose result's shape depends on values
// (run_functions.cc).
RelaxBuiltin find_run_function(std::string_view name);

// The same of those that work on caches of attention (attention_cache.cc).
RelaxBuiltin find_cache_function(std::string_view name);

// Why a builtin of TVM's is left out; empty for other names.
std::string_view why_left_out(std::string_view name);

}  // namespace run_model
