#include "runtime/relax/relax_model.h"

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/relax/machine.h"

namespace run_model {

const RelaxFunction& choose_function(const RelaxExecutable& executable, const std::string& name,
                                     const std::string& source) {
  const std::string& wanted = name.empty() ? "main" : name;
  const RelaxFunction* function = executable.find(wanted);
  if (function != nullptr && function->kind != RelaxFunctionKind::kPacked) return *function;
  std::vector<std::string> names;
  for (const RelaxFunction& each : executable.functions) {
    if (each.kind != RelaxFunctionKind::kPacked) names.push_back(each.name);
  }
  throw Error(
      ErrorKind::kMismatch,
      source + " has no function " + in_quotes(wanted) + " to be called, only " +
          (names.empty() ? "none" : comma_list(names, [](const auto& n) { return in_quotes(n); })),
      "--function NAME chooses one");
}

RelaxTrace trace_function(const RelaxExecutable& executable, const RelaxFunction& function,
                          const std::vector<RelaxInput>& inputs,
                          const std::vector<std::vector<std::int64_t>>& shapes,
                          const ModelLibrary& library) {
  Tracer tracer(executable);
  std::vector<FfiValue> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(tracer.argument(inputs[i].name, shapes[i], inputs[i].dtype));
  }
  RelaxMachine machine(executable, library, &tracer);
  const std::vector<FfiAny> borrowed(arguments.begin(), arguments.end());
  const FfiValue result = machine.call(function, borrowed);
  return tracer.finish(result);
}

}  // namespace run_model
