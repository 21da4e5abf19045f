#include <run_model/rpc/function.h>

#include <utility>
#include <vector>

namespace run_model::rpc {
namespace {

class CallableFunction final : public Function {
 public:
  CallableFunction(std::string name, std::function<Value(const Arguments&)> body)
      : Function(std::move(name)), body_(std::move(body)) {}

  Value call(Values arguments) const override { return body_(Arguments(name(), arguments)); }

 private:
  std::function<Value(const Arguments&)> body_;
};

}  // namespace

std::function<void()> Function::prepare(Values arguments) const {
  return [this, kept = std::vector<Value>(arguments.begin(), arguments.end())] { call(kept); };
}

FunctionPointer make_function(std::string name, std::function<Value(const Arguments&)> body) {
  return std::make_shared<CallableFunction>(std::move(name), std::move(body));
}

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
