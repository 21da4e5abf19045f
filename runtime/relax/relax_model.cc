#include "runtime/relax/relax_model.h"

#include <algorithm>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/loading/library_check.h"
#include "runtime/relax/machine.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

int refuse_to_run(void* /*self*/, const FfiAny* /*args*/, std::int32_t /*count*/,
                  FfiAny* /*result*/) {
  set_last_packed_error("the library is not loaded");
  return -1;
}

// A library that is a file only: it has functions, but they cannot be called.
class FileLibrary final : public ModelLibrary {
 public:
  FileLibrary(const ElfFile& elf, std::filesystem::path path)
      : elf_(elf),
        path_(std::move(path)),
        prefix_(library_kind(elf) == LibraryKind::kTvm022 ? kFfiPrefix : "") {}

  const std::filesystem::path& path() const override { return path_; }
  PackedFunction find(const std::string& /*name*/) const override { return nullptr; }
  const std::optional<EmbeddedGraph>& embedded_graph() const override { return no_graph_; }
  FfiFunction find_ffi(const std::string& name) const override {
    return elf_.find(prefix_ + name) != nullptr ? refuse_to_run : nullptr;
  }

 private:
  const ElfFile& elf_;
  std::filesystem::path path_;
  std::string prefix_;
  std::optional<EmbeddedGraph> no_graph_;
};

}  // namespace

std::vector<std::string> callable_functions(const RelaxExecutable& executable) {
  std::vector<std::string> names;
  for (const RelaxFunction& function : executable.functions) {
    if (function.kind != RelaxFunctionKind::kPacked) names.push_back(function.name);
  }
  return names;
}

const RelaxFunction& choose_function(const RelaxExecutable& executable, const std::string& name,
                                     const std::string& source) {
  const std::string& wanted = name.empty() ? "main" : name;
  const RelaxFunction* function = executable.find(wanted);
  if (function != nullptr && function->kind != RelaxFunctionKind::kPacked) return *function;
  const std::vector<std::string> names = callable_functions(executable);
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
    if (inputs[i].kind != RelaxInputKind::kTensor) {
      throw NotTraceable("its course depends on the numbers of " + in_quotes(inputs[i].name));
    }
    arguments.push_back(tracer.argument(inputs[i].name, shapes[i], inputs[i].dtype));
  }
  arguments = arguments_of(inputs, std::move(arguments));
  RelaxMachine machine(executable, library, &tracer);
  const std::vector<FfiAny> borrowed(arguments.begin(), arguments.end());
  const FfiValue result = machine.call(function, borrowed);
  return tracer.finish(result);
}

Graph graph_of_call(const RelaxFunction& function, const std::vector<RelaxInput>& inputs,
                    const std::vector<std::vector<std::int64_t>>& shapes) {
  constexpr DLDataType plain_bool{kDLUInt, 1, 1};
  Graph graph;
  GraphNode call;
  call.name = call.function = function.name;
  call.kind = NodeKind::kMachine;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    GraphEntry entry;
    entry.shape = shapes[i];
    entry.dtype = same_dtype(inputs[i].dtype, kFfiBoolType) ? plain_bool : inputs[i].dtype;
    entry.bytes = tensor_bytes(entry.shape, entry.dtype);
    entry.storage = graph.num_storages++;
    GraphNode node;
    node.name = inputs[i].name;
    node.first_output = i;
    graph.inputs.push_back(graph.nodes.size());
    graph.nodes.push_back(std::move(node));
    graph.entries.push_back(std::move(entry));
    call.inputs.push_back(i);
  }
  call.first_output = inputs.size();
  call.num_outputs = 0;
  graph.nodes.push_back(std::move(call));
  return graph;
}

RelaxDescription describe_function(const RelaxExecutable& executable, const std::string& name,
                                   const ElfFile& elf, const std::filesystem::path& path) {
  const RelaxFunction& function = choose_function(executable, name, elf.source());
  RelaxDescription description;
  description.inputs = input_forms(executable, function);
  description.functions = callable_functions(executable);
  std::vector<std::vector<std::int64_t>> shapes;
  bool known = true;
  for (const RelaxInput& input : description.inputs) {
    known = known && input.known;
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    for (const RelaxDimension& dim : input.dims) shape.push_back(dim.number < 0 ? 1 : dim.number);
  }
  description.machine_code =
      std::any_of(executable.functions.begin(), executable.functions.end(),
                  [](const RelaxFunction& f) { return f.kind == RelaxFunctionKind::kCompiled; });
  const FileLibrary library(elf, path);
  try {
    if (known) {
      RelaxTrace trace = trace_function(executable, function, description.inputs, shapes, library);
      description.graph = std::move(trace.graph);
      description.constants = std::move(trace.constants);
      description.whole = true;
      return description;
    }
  } catch (const NotTraceable&) {
  } catch (const Error& error) {
    // Shapes that the library's functions compute need its code, and those that are taken for
    // unknown ones need not fit each other.
    const bool taken = !all_static(description.inputs) && error.kind() != ErrorKind::kIncompatible;
    if (error.kind() != ErrorKind::kModel && !taken) throw;
  }
  description.graph = graph_of_call(function, description.inputs, shapes);
  return description;
}

}  // namespace run_model
