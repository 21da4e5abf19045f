// What Module::open gives: a library and the model that may lie in it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <run_model/module.h>
#include "runtime/loading/device_blob.h"
#include "runtime/relax/ffi_abi.h"

namespace run_model {

struct RelaxExecutable;

class DeviceFunctions;

class ModelLibrary : public Module {
 public:
  // The graph of a single-file export of TVM up to 0.20.
  virtual const std::optional<EmbeddedGraph>& embedded_graph() const = 0;

  // Its code for GPUs; empty where it computes on the CPU only.
  virtual const DeviceCodes& device_codes() const;
  // What makes its kernels callable; null where it has none.
  virtual DeviceFunctions* device_functions() const { return nullptr; }

  // The executable that TVM since 0.21 puts in its place; null where there is none.
  virtual std::shared_ptr<const RelaxExecutable> relax_executable() const { return nullptr; }

  // Whether its functions take what tvm-ffi lays down (TVM 0.21 and later).
  virtual bool speaks_ffi() const { return false; }

  // The compiled function `name` of a library that speaks tvm-ffi's ABI, or null.
  virtual FfiFunction find_ffi(const std::string& /*name*/) const { return nullptr; }

  // The function object that stands for `name` in calls by name of such a library: of its own
  // function, or of this runtime's. It lives as long as the library. Throws Error(kIncompatible)
  // for a name that is neither.
  virtual void* function_object(const std::string& /*name*/) const { return nullptr; }
};

// The graph of a single-file export, or null where `library` holds none.
const EmbeddedGraph* embedded_graph(const Module& library);

// `library` as what it is, or null for another implementation of Module.
const ModelLibrary* as_model_library(const Module& library);

}  // namespace run_model
