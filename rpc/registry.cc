#include <run_model/rpc/registry.h>

#include <utility>

namespace run_model::rpc {

void Registry::add(FunctionPointer function) {
  const std::string name = function->name();
  functions_[name] = std::move(function);
}

void Registry::add(std::string name, std::function<Value(const Arguments&)> body) {
  add(make_function(std::move(name), std::move(body)));
}

FunctionPointer Registry::find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found != functions_.end() ? found->second : nullptr;
}

}  // namespace run_model::rpc
