// The functions of the virtual machine itself, by the names under which executables call them.
#pragma once

#include <string_view>

#include "runtime/relax/builtin_call.h"

namespace run_model {

using RelaxBuiltin = void (*)(RelaxCall& call);

// Null for a name that is none, or that run_model leaves out.
RelaxBuiltin find_builtin(std::string_view name);

// The same of those that TVM has for operators whose result's shape depends on values
// (run_functions.cc).
RelaxBuiltin find_run_function(std::string_view name);

// The same of those that work on caches of attention (attention_cache.cc).
RelaxBuiltin find_cache_function(std::string_view name);

// The same of those that work on paged caches (paged_cache.cc).
RelaxBuiltin find_paged_cache_function(std::string_view name);

// Why a builtin of TVM's is left out; empty for other names.
std::string_view why_left_out(std::string_view name);

}  // namespace run_model
