// The Relax virtual machine: runs the functions of an executable, on values or, for a tracer, on
// tensors that have shapes only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "runtime/loading/model_library.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/values.h"
#include "runtime/threads/call_context.h"

namespace run_model {

class Tracer;

// A model whose course depends on values that only a run has: on what an `if` decides, or on a
// shape that is computed from a tensor. It cannot be turned into a graph, but be interpreted.
class NotTraceable : public Error {
 public:
  explicit NotTraceable(const std::string& what) : Error(ErrorKind::kIncompatible, what) {}
};

// Throws NotTraceable for what a function would give that was not called.
void expect_traced(const FfiAny& value);

// Not safe to use from two threads at once.
class RelaxMachine {
 public:
  // Resolves all functions that the executable calls. `library` must outlive the machine, and so
  // must `tracer`, if there is one. Throws Error(kIncompatible) naming a function that neither the
  // library nor this runtime has.
  RelaxMachine(const RelaxExecutable& executable, const ModelLibrary& library,
               Tracer* tracer = nullptr);
  RelaxMachine(const RelaxMachine&) = delete;
  RelaxMachine& operator=(const RelaxMachine&) = delete;

  // Calls a function of the executable. Throws Error(kMismatch) where an argument is not what the
  // function expects, Error of the failure that a compiled function reports (kModel where it says
  // no more than a text), NotTraceable.
  FfiValue call(const RelaxFunction& function, std::span<const FfiAny> arguments);

  // Calls what a value of a function stands for.
  FfiValue call(const FfiFunctionObject& function, std::span<const FfiAny> arguments);

  // Memory for tensors, which is used again once nobody holds it. Any thread may let go of it.
  FfiValue allocate_storage(std::size_t bytes);
  FfiValue allocate_tensor(std::span<const std::int64_t> shape, DLDataType dtype);

  // Null while nothing is traced.
  Tracer* tracer() const { return tracer_; }

  // Bytes held for tensors.
  std::size_t held_bytes() const;

 private:
  struct Memory {
    std::mutex mutex;
    Workspace blocks;
  };

  FfiValue resolve(std::size_t number);
  FfiValue constant(std::size_t number);
  FfiValue run(const RelaxFunction& function, std::span<const FfiAny> arguments);
  FfiValue run_compiled(const RelaxFunction& function, std::span<const FfiAny> arguments);
  FfiValue call_compiled(const FfiFunctionObject& function, std::span<const FfiAny> arguments);
  FfiAny argument(const RelaxArgument& argument, const std::vector<FfiValue>& registers) const;

  const RelaxExecutable& executable_;
  const ModelLibrary& library_;
  Tracer* tracer_;
  std::shared_ptr<Memory> memory_;
  std::vector<FfiValue> functions_;
  std::vector<FfiValue> constants_;
  std::size_t depth_ = 0;  // of calls in each other
};

}  // namespace run_model
