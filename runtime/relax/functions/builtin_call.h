// What a function of the virtual machine is called with.
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

}  // namespace run_model
