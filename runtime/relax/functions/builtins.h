// The functions of the virtual machine itself, by the names under which executables call them.
#pragma once

#include <span>
#include <string_view>

#include "runtime/relax/functions/builtin_call.h"

namespace run_model {

using RelaxBuiltin = void (*)(RelaxCall& call);

// Null for a name that is none, or that run_model leaves out.
RelaxBuiltin find_builtin(std::string_view name);

struct NamedBuiltin {
  std::string_view name;
  RelaxBuiltin function;
};

// Of these, those that TVM has for operators whose result's shape depends on values
// (run_functions.cc), that work on caches of attention (attention_cache.cc), and on paged ones
// (paged_cache.cc).
std::span<const NamedBuiltin> run_functions();
std::span<const NamedBuiltin> cache_functions();
std::span<const NamedBuiltin> paged_cache_functions();

// Why a builtin of TVM's is left out; empty for other names.
std::string_view why_left_out(std::string_view name);

}  // namespace run_model
