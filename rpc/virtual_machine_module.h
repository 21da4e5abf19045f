// The functions of a Relax virtual machine as TVM's VirtualMachine calls them (vm.cc and vm.py,
// v0.21.0 to v0.27.0).
#pragma once

#include <memory>

#include <run_model/module.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

// The machine of a library that holds a Relax executable. Each of its functions runs as run_model
// runs it: as a graph where it is one, for the shapes that it is given.
std::shared_ptr<RemoteModule> make_virtual_machine(const std::shared_ptr<Module>& library);

}  // namespace run_model::rpc
