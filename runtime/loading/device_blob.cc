#include "runtime/loading/device_blob.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include <run_model/error.h>
#include "base/byte_reader.h"
#include "base/text.h"
#include "runtime/devices/code/code_reader.h"

namespace run_model {
namespace {

// Far above what any model has, and small enough to allocate for.
constexpr std::uint64_t kMaxModules = 1024;
constexpr std::uint64_t kMaxNames = 1 << 20;
constexpr std::uint64_t kMaxBlobName = 1 << 16;
constexpr std::uint64_t kAnyLength = std::numeric_limits<std::uint64_t>::max();

// What a module of a type key was made for, in words; the keys are those under which TVM registers
// "runtime.module.loadbinary_<key>".
struct ForeignModule {
  std::string_view key;
  std::string_view purpose;
};

constexpr std::array kForeignModules = {
    ForeignModule{"cuda", "an NVIDIA GPU (cuda)"},
    ForeignModule{"opencl", "a GPU through OpenCL"},
    ForeignModule{"vulkan", "a GPU through Vulkan"},
    ForeignModule{"metal", "an Apple GPU (metal)"},
    ForeignModule{"hip", "an AMD GPU (rocm)"},
    ForeignModule{"hsaco", "an AMD GPU (rocm)"},
    ForeignModule{"webgpu", "WebGPU"},
    ForeignModule{"tensorrt", "NVIDIA TensorRT"},
    ForeignModule{"dnnl_json", "the DNNL library"},
    ForeignModule{"arm_compute_lib", "the Arm Compute Library"},
    ForeignModule{"VMExecutable", "TVM's Relay virtual machine, not the graph executor"},
    ForeignModule{"AotExecutorFactory", "TVM's ahead-of-time executor, not the graph executor"},
    ForeignModule{"relax", "TVM's Relax virtual machine, not the graph executor"},
    ForeignModule{"relax.Executable", "TVM's Relax virtual machine, not the graph executor"},
};

[[noreturn]] void refuse_module(const std::string& source, const std::string& key) {
  const auto known = std::find_if(kForeignModules.begin(), kForeignModules.end(),
                                  [&](const ForeignModule& m) { return m.key == key; });
  if (known != kForeignModules.end()) {
    throw Error(ErrorKind::kIncompatible,
                source + " was compiled for " + std::string(known->purpose) +
                    ", which run_model does not support",
                "compile for the CPU with the graph executor: target \"llvm\", no -libs= and no "
                "partitioning for an external library");
  }
  throw Error(
      ErrorKind::kIncompatible,
      source + " carries a module of the kind " + in_quotes(key) +
          ", which run_model does not know (it knows CPU code, graphs, cuda, opencl and vulkan)",
      "compile for target \"llvm\" with the graph executor");
}

std::vector<std::string> read_names(ByteReader& reader, const std::string& what) {
  const std::size_t count = reader.count(kMaxNames, 8, "the number of " + what);
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(reader.string(kMaxBlobName, "one of the " + what));
  }
  return names;
}

// GraphExecutorFactory, and GraphRuntimeFactory as 0.7 called it.
EmbeddedGraph read_graph(ByteReader& reader) {
  EmbeddedGraph graph;
  graph.graph_json = reader.string(kAnyLength, "the graph");
  const std::uint64_t tensors = reader.u64("the number of parameters");
  const std::vector<std::string> names = read_names(reader, "parameter names");
  if (tensors != names.size()) {
    reader.fail("there are " + std::to_string(tensors) + " parameters, but " +
                std::to_string(names.size()) + " names for them");
  }
  graph.params = read_tensors(reader, names);
  graph.module_name = reader.string(kMaxBlobName, "the module's name");
  return graph;
}

// Constants for functions that an external code generator made ("metadata" up to 0.8,
// "const_loader" after). Without such functions it is empty and has no effect.
void read_constants(ByteReader& reader, const std::string& source) {
  const std::vector<std::string> variables = read_names(reader, "constants' names");
  const std::uint64_t tensors = reader.u64("the number of constants");
  if (tensors != variables.size()) {
    reader.fail("there are " + std::to_string(tensors) + " constants, but " +
                std::to_string(variables.size()) + " names for them");
  }
  read_tensors(reader, variables);
  const std::vector<std::string> functions = read_names(reader, "functions that take constants");
  const std::uint64_t lists = reader.u64("the number of lists of constants");
  if (lists != functions.size()) {
    reader.fail("there are " + std::to_string(lists) + " lists of constants for " +
                std::to_string(functions.size()) + " functions");
  }
  for (std::uint64_t i = 0; i < lists; ++i) {
    read_names(reader, "constants of a function");
  }
  if (tensors != 0) {
    throw Error(ErrorKind::kIncompatible,
                source + " has constants for functions of an external code generator (" +
                    in_quotes(functions.empty() ? variables.front() : functions.front()) +
                    "), which run_model does not support",
                "compile without partitioning for an external library");
  }
}

// Which module imports which. There is one compiled library however they hang together, so it is
// only checked for being well-formed.
void read_import_tree(ByteReader& reader, std::size_t modules) {
  const std::size_t rows = reader.count(kMaxModules + 1, 8, "the import tree's number of rows");
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint64_t row = reader.u64("a row of the import tree");
    if (row < last) {
      reader.fail("the rows of the import tree are not in order");
    }
    last = row;
  }
  const std::size_t children =
      reader.count(kMaxModules * kMaxModules, 8, "the import tree's number of children");
  if (last != children) {
    reader.fail("the import tree's rows and children do not fit together");
  }
  for (std::size_t i = 0; i < children; ++i) {
    const std::uint64_t child = reader.u64("a child in the import tree");
    if (child >= modules) {
      reader.fail("the import tree names module " + std::to_string(child) + " of " +
                  std::to_string(modules));
    }
  }
}

// Compiled code asks for kernels by name only.
void refuse_second_kernels(const ByteReader& reader, const DeviceCodes& codes) {
  std::set<std::string_view> names;
  for (const auto& code : codes) {
    for (const KernelInfo& kernel : code->kernels) {
      if (!names.insert(kernel.name).second) {
        reader.fail("the kernel " + in_quotes(kernel.name) + " is in two modules");
      }
    }
  }
}

}  // namespace

DeviceBlob read_device_blob(std::span<const std::byte> blob, const std::string& source,
                            std::size_t base) {
  ByteReader length_reader(blob, source, {}, base);
  const std::uint64_t length = length_reader.u64("the length of the embedded modules");
  const auto content = length_reader.bytes(length, "the embedded modules");

  ByteReader reader(content, source, {}, base + 8);
  const std::size_t modules = reader.count(kMaxModules, 8, "the number of embedded modules");
  DeviceBlob parsed;
  for (std::size_t i = 0; i < modules; ++i) {
    const std::string key = reader.string(kMaxBlobName, "an embedded module's kind");
    if (key == "_lib" || key == "metadata_module") {
      continue;  // these have no content
    }
    if (key == "_import_tree") {
      read_import_tree(reader, modules - 1);
    } else if (key == "GraphExecutorFactory" || key == "GraphRuntimeFactory") {
      if (parsed.graph) {
        reader.fail("there is a second graph, where one was expected");
      }
      parsed.graph = read_graph(reader);
    } else if (key == "metadata" || key == "const_loader") {
      read_constants(reader, source);
    } else if (is_device_code(key)) {
      parsed.codes.push_back(read_device_code(reader, key));
    } else {
      refuse_module(source, key);
    }
  }
  if (!reader.at_end()) {
    reader.fail(std::to_string(reader.remaining()) + " bytes are left over after the last module");
  }
  refuse_second_kernels(reader, parsed.codes);
  return parsed;
}

void refuse_device_codes(const DeviceCodes& codes, const std::string& source) {
  if (codes.empty()) return;
  switch (codes.front()->device) {
    case kDLCUDA:
      refuse_module(source, "cuda");
    case kDLOpenCL:
      refuse_module(source, "opencl");
    default:
      refuse_module(source, "vulkan");
  }
}

}  // namespace run_model
