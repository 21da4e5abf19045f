// Functions of a module that are methods of its class.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <run_model/rpc/function.h>

namespace run_model::rpc {

template <typename Module>
using Methods = std::map<std::string_view, Value (Module::*)(const Arguments&)>;

// Function `name` of `self`, which it keeps alive. Null where `methods` has none.
template <typename Module>
FunctionPointer bind_method(std::shared_ptr<Module> self, const Methods<Module>& methods,
                            const std::string& name) {
  const auto found = methods.find(name);
  if (found == methods.end()) return nullptr;
  return make_function(
      name, [self = std::move(self), method = found->second](const Arguments& arguments) {
        return (self.get()->*method)(arguments);
      });
}

}  // namespace run_model::rpc
