// What the functions that make executors take: the graph as JSON, its library, and numbers of devices.
#pragma once

#include <memory>

#include "rpc/function.h"
#include "runtime/module.h"

namespace run_model::rpc {

// Checks all of them and gives the library. The devices are pairs of numbers, at least one; all of
// them have to be the CPU.
std::shared_ptr<Module> executor_library(const Arguments& arguments);

}  // namespace run_model::rpc
