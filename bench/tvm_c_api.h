// TVM's own C++ runtime through its C API, by dlopen and with our own declarations (the ABI of
// releases 0.7 … 0.20, c_runtime_api.h), so that the bench needs no headers of TVM.
#pragma once

#include <dlfcn.h>
#include <dlpack/dlpack.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include <run_model/packed_function.h>

namespace run_model::bench {

class TvmRuntime {
 public:
  using Handle = void*;

  explicit TvmRuntime(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    find(handle, "TVMGetLastError", last_error_);
    find(handle, "TVMModLoadFromFile", load_module_);
    find(handle, "TVMModGetFunction", module_function_);
    find(handle, "TVMFuncGetGlobal", global_function_);
    find(handle, "TVMFuncCall", call_);
  }

  Handle load_module(const std::string& path) const {
    Handle module = nullptr;
    check(load_module_(path.c_str(), "so", &module));
    return module;
  }

  Handle module_function(Handle module, const std::string& name) const {
    Handle function = nullptr;
    check(module_function_(module, name.c_str(), 0, &function));
    if (function == nullptr) throw std::runtime_error("no function " + name);
    return function;
  }

  Handle global_function(const std::string& name) const {
    Handle function = nullptr;
    check(global_function_(name.c_str(), &function));
    if (function == nullptr) throw std::runtime_error("no function " + name);
    return function;
  }

  PackedValue call(Handle function, PackedValue* values = nullptr, int* codes = nullptr,
                   int count = 0) const {
    PackedValue result{};
    int result_code = kTypeNull;
    check(call_(function, values, codes, count, &result, &result_code));
    return result;
  }

 private:
  template <typename Function>
  static void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("libtvm_runtime lacks ") + name);
  }

  void check(int status) const {
    if (status != 0) throw std::runtime_error(last_error_());
  }

  const char* (*last_error_)() = nullptr;
  int (*load_module_)(const char* path, const char* format, Handle* module) = nullptr;
  int (*module_function_)(Handle module, const char* name, int query_imports,
                          Handle* function) = nullptr;
  int (*global_function_)(const char* name, Handle* function) = nullptr;
  int (*call_)(Handle function, PackedValue* values, int* codes, int count, PackedValue* result,
               int* result_code) = nullptr;
};

}  // namespace run_model::bench
