// A compiled library as clients see it.
#pragma once

#include <memory>
#include <string>

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

}  // namespace run_model::rpc
