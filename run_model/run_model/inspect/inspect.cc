#include "run_model/run_model/inspect/inspect.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <run_model/error.h>
#include <run_model/graph.h>
#include "artifacts/targets.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"
#include "runtime/loading/device_blob.h"
#include "runtime/loading/param_binding.h"
#include "runtime/loading/params_file.h"
#include "runtime/memory/storage_plan.h"
#include "runtime/relax/called_names.h"
#include "runtime/relax/relax_model.h"

namespace run_model {
namespace {

using MappedFilePtr = std::shared_ptr<const MappedFile>;

// Adds the message of what `check` throws to the problems.
template <typename Check>
void note_problem(std::vector<std::string>& problems, Check check) {
  try {
    check();
  } catch (const Error& error) {
    if (std::ranges::find(problems, error.what()) == problems.end()) {
      problems.emplace_back(error.what());
    }
  }
}

std::string newest_glibc(const ElfFile& elf) {
  constexpr std::string_view kPrefix = "GLIBC_";
  std::optional<GlibcVersion> newest;
  for (const ElfVersionNeed& need : elf.version_needs()) {
    if (!need.version.starts_with(kPrefix)) continue;
    const std::optional<GlibcVersion> version =
        parse_glibc_version(need.version.substr(kPrefix.size()));
    if (version && (!newest || *version > *newest)) newest = version;
  }
  if (!newest) return "";
  return std::to_string(newest->major) + "." + std::to_string(newest->minor);
}

LibraryFacts library_facts(const ElfFile& elf, const MappedFile& file) {
  LibraryFacts facts;
  facts.machine = target_name(elf.target());
  facts.triple = target_triple(elf.target());
  facts.kind = library_kind(elf);
  facts.glibc = newest_glibc(elf);
  facts.needed.assign(elf.needed().begin(), elf.needed().end());
  for (const std::string_view name : missing_symbols(elf, Host::current())) {
    facts.missing.emplace_back(name);
  }
  facts.functions = compiled_functions(elf).size();
  facts.bytes = file.bytes().size();
  return facts;
}

DeviceBlob device_blob(const ElfFile& elf, const MappedFilePtr& file) {
  const ElfSymbol* blob = elf.find("__tvm_dev_mblob");
  if (blob == nullptr) return {};
  const std::span<const std::byte> bytes = elf.bytes_of(*blob);
  const std::size_t base =
      bytes.empty() ? 0 : static_cast<std::size_t>(bytes.data() - file->bytes().data());
  return read_device_blob(bytes, elf.source(), base);
}

// The graph's text and the parameters, from their files or from inside the library.
struct Contents {
  std::optional<Graph> graph;
  std::string graph_source;
  std::vector<Param> params;
  std::vector<MappedFilePtr> files;  // that the parameters point into
};

Contents read_contents(const ModelFiles& files, const std::optional<EmbeddedGraph>& embedded) {
  Contents contents;
  if (!files.graph.empty()) {
    const MappedFilePtr file = MappedFile::open(files.graph, "graph file");
    contents.graph_source = "graph file " + path_in_quotes(files.graph);
    contents.graph = parse_graph(as_text(file->bytes()), contents.graph_source);
  } else if (embedded) {
    contents.graph_source = "the graph inside library " + path_in_quotes(files.library);
    contents.graph = parse_graph(embedded->graph_json, contents.graph_source);
  }
  if (!files.params.empty()) {
    contents.files.push_back(MappedFile::open(files.params, "parameter file"));
    contents.params = parse_params(contents.files.back()->bytes(),
                                   "parameter file " + path_in_quotes(files.params));
  } else if (embedded) {
    contents.params = embedded->params;
  }
  return contents;
}

// Whether an input of a graph whose parameters are looked up in the library is such a parameter.
// The library's code would tell; by the compiler's names for its constants, they are p0, p1 …
bool is_named_as_param(std::string_view name) {
  return name.size() > 1 && name[0] == 'p' && name.find_first_not_of("0123456789", 1) == name.npos;
}

GraphFacts graph_facts(const Graph& graph, const std::vector<Param>& params,
                       const StoragePlan& plan, bool looked_up) {
  GraphFacts facts;
  facts.nodes = graph.nodes.size();
  std::set<std::string_view> names;
  for (const Param& param : params) {
    names.insert(param.name);
    facts.param_bytes += param.data.size();
  }
  facts.params = params.size();
  std::vector<bool> holds_param(graph.num_storages, false);
  for (const GraphNode& node : graph.nodes) {
    if (node.kind == NodeKind::kFunction) ++facts.function_calls;
    if (node.kind == NodeKind::kInput && names.contains(node.name)) {
      holds_param[graph.entries[node.first_output].storage] = true;
    }
  }
  for (const std::size_t index : graph.inputs) {
    const GraphNode& node = graph.nodes[index];
    if (names.contains(node.name)) continue;
    const GraphEntry& entry = graph.entries[node.first_output];
    if (looked_up && is_named_as_param(node.name)) {
      ++facts.params;
      facts.param_bytes += entry.bytes;
      holds_param[entry.storage] = true;
      continue;
    }
    facts.inputs.push_back({node.name, entry.shape, entry.dtype});
  }
  for (const std::size_t index : graph.outputs) {
    const GraphEntry& entry = graph.entries[index];
    facts.outputs.push_back(
        {"output_" + std::to_string(facts.outputs.size()), entry.shape, entry.dtype});
  }
  for (std::size_t storage = 0; storage < plan.storage_bytes.size(); ++storage) {
    if (!holds_param[storage]) facts.activation_bytes += plan.storage_bytes[storage];
  }
  return facts;
}

// Dimensions that may be any number are -1, as in metadata.json.
void show_symbols(std::vector<TensorInfo>& shown, const std::vector<RelaxInput>& inputs) {
  // What nothing is known of is among the parameters that are kept apart.
  std::erase_if(shown, [&](const TensorInfo& info) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const RelaxInput& input) {
      return !input.known && input.name == info.name;
    });
  });
  for (std::size_t i = 0; i < shown.size() && i < inputs.size(); ++i) {
    for (std::size_t d = 0; d < inputs[i].dims.size(); ++d) {
      shown[i].shape[d] = inputs[i].dims[d].number;
      const std::string& symbol = inputs[i].dims[d].symbol;
      shown[i].symbols.push_back(symbol);
    }
  }
}

// Functions that the graph calls and the library has not.
void check_functions(const Graph& graph, const ElfFile& elf) {
  std::set<std::string> missing;
  for (const GraphNode& node : graph.nodes) {
    if (node.kind == NodeKind::kFunction && elf.find(node.function) == nullptr) {
      missing.insert(node.function);
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::kMismatch,
              elf.source() + " lacks " + std::to_string(missing.size()) +
                  " of the functions that the graph calls, the first of them " +
                  in_quotes(*missing.begin()),
              "library and graph are of different models");
}

void check_params(const Graph& graph, const std::vector<Param>& params) {
  for (const Param& param : params) {
    const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& n) {
      return n.kind == NodeKind::kInput && n.name == param.name;
    });
    if (node == graph.nodes.end()) {
      throw Error(ErrorKind::kMismatch, "the graph has no parameter " + in_quotes(param.name),
                  "graph and parameters are of different models");
    }
    const GraphEntry& entry = graph.entries[node->first_output];
    if (entry.shape == param.shape && same_dtype(entry.dtype, param.dtype)) continue;
    throw Error(ErrorKind::kMismatch,
                "the parameter " + in_quotes(param.name) + " is " + dtype_name(param.dtype) + " " +
                    shape_name(param.shape) + ", but the graph takes " + dtype_name(entry.dtype) +
                    " " + shape_name(entry.shape),
                "graph and parameters are of different models");
  }
}

// What the function that is asked for of an executable of TVM's Relax looks like, if the library
// has one; its graph and constants become the contents.
std::optional<RelaxDescription> read_relax(const Settings& settings, const ElfFile& elf,
                                           const MappedFile& file, Contents& contents,
                                           Inspection& inspection) {
  std::vector<std::string>& problems = inspection.problems;
  std::optional<RelaxExecutable> executable;
  note_problem(problems, [&] { executable = relax_executable_of(elf, file.bytes()); });
  if (!executable) return std::nullopt;
  note_problem(problems, [&] { check_called_names(*executable, elf, file.bytes()); });
  std::optional<RelaxDescription> relax;
  note_problem(problems, [&] {
    relax =
        describe_function(*executable, settings.function, elf, inspection.package.files.library);
  });
  if (!relax) return std::nullopt;
  inspection.library.single_file = true;
  inspection.library.callable = std::move(relax->functions);
  if (relax->machine_code) {
    inspection.unknown.emplace_back(
        "its functions are machine code (exec_mode=\"compiled\"): whether they call a function "
        "that is not TVM's own, and not here, shows when they run");
  }
  contents.graph = std::move(relax->graph);
  contents.graph_source = elf.source();
  contents.params = std::move(relax->constants);
  return relax;
}

}  // namespace

Inspection inspect(const Settings& settings) {
  Inspection inspection;
  inspection.package = open_package({.model = settings.model,
                                     .artifacts = settings.artifacts,
                                     .target = settings.target,
                                     .verify = settings.verify,
                                     .for_this_cpu = false});
  const ModelFiles& files = inspection.package.files;
  const MappedFilePtr file = MappedFile::open(files.library, "library");
  const ElfFile elf = ElfFile::parse(file->bytes(), "library " + path_in_quotes(files.library));
  inspection.library = library_facts(elf, *file);
  std::vector<std::string>& problems = inspection.problems;
  note_problem(problems, [&] { check_library(elf, Host::current()); });
  // Another machine's features have no say here.
  if (target_fits(elf.target(), Host::current().target)) {
    note_problem(problems, [&] { check_cpu(inspection.package); });
  }

  DeviceBlob blob;
  note_problem(problems, [&] { blob = device_blob(elf, file); });
  const std::optional<EmbeddedGraph>& embedded = blob.graph;
  inspection.library.single_file = embedded.has_value();
  Contents contents = read_contents(files, embedded);
  std::optional<RelaxDescription> relax;
  if (!contents.graph) relax = read_relax(settings, elf, *file, contents, inspection);
  if (!contents.graph) {
    if (!problems.empty()) return inspection;
    problems.emplace_back("there is no graph, neither beside the library nor inside it");
    return inspection;
  }
  inspection.has_graph = true;
  StoragePlan plan;
  note_problem(problems, [&] { plan = plan_storage(*contents.graph, contents.graph_source); });
  inspection.graph =
      graph_facts(*contents.graph, contents.params, plan, elf.find(kLookupLinkedParam) != nullptr);
  if (relax) {
    // Names were looked up in following the executable, and its constants are its own.
    show_symbols(inspection.graph.inputs, relax->inputs);
    return inspection;
  }
  note_problem(problems, [&] { check_functions(*contents.graph, elf); });
  note_problem(problems, [&] { check_params(*contents.graph, contents.params); });
  return inspection;
}

std::string library_kind_name(LibraryKind kind) {
  switch (kind) {
    case LibraryKind::kTvm:
      return "TVM 0.6 to 0.20";
    case LibraryKind::kTvm021:
      return "TVM 0.21";
    case LibraryKind::kTvm022:
      return "TVM 0.22 or later";
    case LibraryKind::kTvmItself:
      return "TVM itself";
    case LibraryKind::kEmpty:
      return "no functions";
    case LibraryKind::kOther:
      break;
  }
  return "not of TVM";
}

}  // namespace run_model
