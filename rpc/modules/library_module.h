// A compiled library as clients see it, of whichever release of TVM.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <run_model/module.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

// Functions of the library; of a single-file export also what TVM's executor factory offers:
// its name ("default") and "debug_create" make executors, "get_graph_json" gives the graph. A
// library of TVM 0.21 and later that holds a Relax executable has "vm_load_executable" for that.
class LibraryModule : public RemoteModule {
 public:
  explicit LibraryModule(std::shared_ptr<Module> library) : library_(std::move(library)) {}

  std::string kind() const override { return "library"; }
  FunctionPointer find(const std::string& name) override;

  const std::shared_ptr<Module>& library() const { return library_; }

 private:
  std::shared_ptr<Module> library_;
};

// Function `name` of a library, with its arguments converted to the calling convention that the
// library has. Null where it has none of that name.
FunctionPointer compiled_function(const std::shared_ptr<Module>& library, const std::string& name);

// The machine of a library that holds a Relax executable, with the functions that TVM's
// VirtualMachine calls (vm.cc and vm.py, v0.21.0 to v0.27.0). Each of its functions runs as
// run_model runs it: as a graph where it is one, for the shapes that it is given.
std::shared_ptr<RemoteModule> make_virtual_machine(const std::shared_ptr<Module>& library);

}  // namespace run_model::rpc
