// tvm.rpc.server.load_module and what else TVM's clients do with modules (rpc_module.cc and
// server.py, v0.18.0).
#include <memory>
#include <string>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "base/text.h"
#include "rpc/functions/builtin.h"
#include "rpc/functions/link_objects.h"
#include "rpc/library_module.h"

namespace run_model::rpc {
namespace {

// The library in the uploaded file, or what linking the objects in it gives.
std::filesystem::path library_in(const SessionFolder& folder, const std::string& name) {
  const std::filesystem::path path = folder.file(name);
  if (path.extension() == ".so") return path;
  if (path.extension() == ".tar" || path.extension() == ".o") {
    return link_objects(path, folder.place(name + ".so"));
  }
  throw Error(ErrorKind::kMismatch,
              "the file " + in_quotes(name) +
                  " cannot be loaded: its name ends in none of .so, .tar and .o",
              "export a library with lib.export_library(\"net.so\") for the board's CPU");
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
    throw Error(
        ErrorKind::kMismatch, "modules cannot be imported into each other on this server",
        "import them before export_library, which puts all into one file; code for devices other "
        "than the CPU has no use here");
  });
  registry.add(
      "tvm.rpc.server.download_linked_module", [&folder](const Arguments& arguments) -> Value {
        arguments.check_count(1, 1);
        const auto file = MappedFile::open(library_in(folder, arguments.text(0)), "library");
        return Bytes{file, file->bytes()};
      });
}

}  // namespace run_model::rpc
