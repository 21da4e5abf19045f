// The functions that a client finds by name: TVM's registry of global functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <run_model/rpc/function.h>

namespace run_model::rpc {

class Registry {
 public:
  // A function of this name that was added before is replaced.
  void add(FunctionPointer function);
  void add(std::string name, std::function<Value(const Arguments&)> body);

  // Null where there is none of that name.
  FunctionPointer find(std::string_view name) const;

 private:
  std::map<std::string, FunctionPointer, std::less<>> functions_;
};

}  // namespace run_model::rpc
