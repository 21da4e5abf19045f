#include "rpc/modules/library_module.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "rpc/modules/graph_executor_module.h"
#include "rpc/modules/machine_function.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/executable.h"

namespace run_model::rpc {
namespace {

// A function under its own name, or one that was saved with its last arguments.
class MachineCall final : public Function {
 public:
  MachineCall(std::string name, std::shared_ptr<MachineFunction> function, std::vector<Value> last,
              bool gives)
      : Function(std::move(name)),
        function_(std::move(function)),
        last_(std::move(last)),
        gives_(gives) {}

  Value call(Values values) const override {
    function_->run(tensors(values));
    if (!gives_) return {};
    const auto result = std::make_shared<MachineResult>(function_->result().clone());
    if (const Tensor* single = result->single()) return ArrayResult{*single};
    return std::static_pointer_cast<RemoteObject>(result);
  }

  std::function<void()> prepare(Values values) const override {
    return [this, inputs = tensors(values)] { function_->run(inputs); };
  }

 private:
  std::vector<Tensor> tensors(Values values) const {
    std::vector<Value> all(values.begin(), values.end());
    all.insert(all.end(), last_.begin(), last_.end());
    return function_->tensors(Arguments(name(), all), 0, false);
  }

  std::shared_ptr<MachineFunction> function_;
  std::vector<Value> last_;
  bool gives_;
};

class VirtualMachineModule final : public RemoteModule {
 public:
  explicit VirtualMachineModule(std::shared_ptr<Module> library) : library_(std::move(library)) {}

  std::string kind() const override { return "relax.VirtualMachine"; }

  FunctionPointer find(const std::string& name) override {
    using Self = VirtualMachineModule;
    static const Methods<Self> methods = {
        {"vm_initialization", &Self::initialize},
        {"set_input", &Self::set_input},
        {"set_input_with_param_module", &Self::refuse_local_functions},
        {"invoke_stateful", &Self::invoke_stateful},
        {"get_output", &Self::get_output},
        {"get_output_arity", &Self::get_output_arity},
        {"get_function_arity", &Self::get_function_arity},
        {"get_function_param_name", &Self::get_function_param_name},
        {"save_function", &Self::save_function},
        {"invoke_closure", &Self::invoke_closure},
        {"set_instrument", &Self::refuse_local_functions},
    };
    const auto self = std::static_pointer_cast<Self>(shared_from_this());
    if (const FunctionPointer method = bind_method(self, methods, name)) return method;
    if (const auto saved = saved_.find(name); saved != saved_.end()) return saved->second;
    const RelaxFunction* function = executable().find(name);
    if (function == nullptr || function->kind == RelaxFunctionKind::kPacked) return nullptr;
    return std::make_shared<MachineCall>(name, function_of(name), std::vector<Value>(), true);
  }

 private:
  const RelaxExecutable& executable() const {
    return *as_model_library(*library_)->relax_executable();
  }

  const std::shared_ptr<MachineFunction>& function_of(const std::string& name) {
    std::shared_ptr<MachineFunction>& function = functions_[name];
    if (function == nullptr) function = std::make_shared<MachineFunction>(library_, name);
    return function;
  }

  // Three numbers for each device: its kind, its own, and how memory is allocated there, which is
  // this runtime's affair.
  Value initialize(const Arguments& arguments) {
    if (arguments.size() == 0 || arguments.size() % 3 != 0) {
      throw Error(ErrorKind::kMismatch,
                  "a virtual machine is initialised with three numbers for each device, but was "
                  "given " +
                      std::to_string(arguments.size()));
    }
    for (std::size_t i = 0; i < arguments.size(); i += 3) check_cpu_numbers(arguments, i);
    return {};
  }

  Value set_input(const Arguments& arguments) {
    MachineFunction& function = *function_of(arguments.text(0));
    function.set_inputs(function.tensors(arguments, 1, true));
    return {};
  }

  Value invoke_stateful(const Arguments& arguments) {
    arguments.check_count(1, 1);
    function_of(arguments.text(0))->run_stateful();
    return {};
  }

  Value get_output(const Arguments& arguments) {
    const MachineResult result = function_of(arguments.text(0))->stateful_result();
    return ArrayResult{result.tensor(arguments, 1).clone()};
  }

  Value get_output_arity(const Arguments& arguments) {
    return function_of(arguments.text(0))->stateful_result().arity(arguments, 1);
  }

  Value get_function_arity(const Arguments& arguments) {
    arguments.check_count(1, 1);
    const RelaxFunction& function = function_of(arguments.text(0))->function();
    return static_cast<std::int64_t>(function.parameter_names.size());
  }

  Value get_function_param_name(const Arguments& arguments) {
    arguments.check_count(2, 2);
    const auto& names = function_of(arguments.text(0))->function().parameter_names;
    const auto last = static_cast<std::int64_t>(names.size()) - 1;
    return names[static_cast<std::size_t>(arguments.integer_within(1, 0, last))];
  }

  // (function, the name to save it under, whether it is to give its result, its last arguments …)
  Value save_function(const Arguments& arguments) {
    const std::string& name = arguments.text(1);
    const bool gives = arguments.integer(2) != 0;
    std::vector<Value> last;
    for (std::size_t i = 3; i < arguments.size(); ++i) {
      const TensorArgument& given = arguments.tensor(i);
      last.emplace_back(TensorArgument{given.tensor.clone(), 0});
    }
    saved_[name] =
        std::make_shared<MachineCall>(name, function_of(arguments.text(0)), std::move(last), gives);
    return {};
  }

  Value invoke_closure(const Arguments& arguments) {
    const auto* closure = std::get_if<FunctionPointer>(&arguments[0]);
    if (closure == nullptr || *closure == nullptr) arguments.fail(0, "a function of this session");
    return (*closure)->call(arguments.values().subspan(1));
  }

  Value refuse_local_functions(const Arguments&) {
    throw Error(ErrorKind::kMismatch,
                "functions and modules of the client cannot be called from a virtual machine on "
                "another one",
                "pass tensors, and measure with time_evaluator");
  }

  std::shared_ptr<Module> library_;
  std::map<std::string, std::shared_ptr<MachineFunction>> functions_;
  std::map<std::string, FunctionPointer> saved_;
};

}  // namespace

std::shared_ptr<RemoteModule> make_virtual_machine(const std::shared_ptr<Module>& library) {
  return std::make_shared<VirtualMachineModule>(library);
}

}  // namespace run_model::rpc
