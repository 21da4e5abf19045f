// tvm.rpc.server.load_module and what else TVM's clients do with modules (rpc_module.cc and
// server.py, v0.18.0), and tvm.graph_executor.create and tvm.graph_executor_debug.create, which
// make executors of them.
#include <memory>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "base/text.h"
#include "rpc/device_buffer.h"
#include "rpc/functions/builtin.h"
#include "rpc/functions/link_objects.h"
#include "rpc/modules/debug_executor_module.h"
#include "rpc/modules/graph_executor_module.h"
#include "rpc/modules/library_module.h"

namespace run_model::rpc {
namespace {

// The library in the uploaded file, or what linking the objects in it gives.
std::filesystem::path library_in(const SessionFolder& folder, const std::string& name) {
  std::filesystem::path path = folder.file(name);
  if (path.extension() == ".so") return path;
  if (path.extension() == ".tar" || path.extension() == ".o") {
    return link_objects(path, folder.place(name + ".so"));
  }
  throw Error(ErrorKind::kMismatch,
              "the file " + in_quotes(name) +
                  " cannot be loaded: its name ends in none of .so, .tar and .o",
              "export a library with lib.export_library(\"net.so\") for the board's CPU");
}

// Checks what both take: the graph as JSON, its library, and pairs of numbers of devices, at least
// one. Gives the library.
std::shared_ptr<Module> executor_library(const Arguments& arguments) {
  arguments.text(0);
  const auto library = std::dynamic_pointer_cast<LibraryModule>(arguments.module(1));
  if (library == nullptr) {
    arguments.fail(
        1, "a library that load_module gave (it is of kind " + arguments.module(1)->kind() + ")");
  }
  if (arguments.size() < 4 || arguments.size() % 2 != 0) {
    throw Error(ErrorKind::kMismatch,
                "an executor is made of a graph, a library and two numbers for each device, but " +
                    std::to_string(arguments.size()) + " arguments were given");
  }
  return library->library();
}

// The GPUs among the devices.
std::vector<DLDevice> executor_devices(const Arguments& arguments) {
  std::vector<DLDevice> devices;
  for (std::size_t i = 2; i < arguments.size(); i += 2) {
    const Device device = device_numbers(arguments, i);
    if (is_gpu(device)) devices.push_back(dl_device(device));
  }
  return devices;
}

}  // namespace

void add_module_functions(Registry& registry, SessionFolder& folder) {
  registry.add("tvm.rpc.server.load_module", [&folder](const Arguments& arguments) -> Value {
    arguments.check_count(1, 1);
    const std::filesystem::path library = library_in(folder, arguments.text(0));
    return std::shared_ptr<RemoteModule>(std::make_shared<LibraryModule>(Module::open(library)));
  });
  registry.add("tvm.rpc.server.ModuleGetFunction", [](const Arguments& arguments) -> Value {
    // The third says whether to look into imported modules too: a library has all it imports in
    // itself.
    arguments.check_count(2, 3);
    return arguments.module(0)->find(arguments.text(1));
  });
  registry.add("tvm.rpc.server.ImportModule", [](const Arguments& arguments) -> Value {
    arguments.check_count(2, 2);
    throw Error(ErrorKind::kMismatch, "modules cannot be imported into each other on this server",
                "import them before export_library, which puts all into one file");
  });
  registry.add(
      "tvm.rpc.server.download_linked_module", [&folder](const Arguments& arguments) -> Value {
        arguments.check_count(1, 1);
        const auto file = MappedFile::open(library_in(folder, arguments.text(0)), "library");
        return Bytes{file, file->bytes()};
      });
}

void add_executors(Registry& registry) {
  registry.add("tvm.graph_executor.create", [](const Arguments& arguments) -> Value {
    const std::shared_ptr<Module> library = executor_library(arguments);
    return make_graph_executor(library, arguments.text(0), executor_devices(arguments));
  });
  registry.add("tvm.graph_executor_debug.create", [](const Arguments& arguments) -> Value {
    const std::shared_ptr<Module> library = executor_library(arguments);
    return make_debug_executor(library, arguments.text(0), executor_devices(arguments));
  });
}

}  // namespace run_model::rpc
