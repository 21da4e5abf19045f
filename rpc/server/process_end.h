// How a process ended, in words.
#pragma once

#include <string>

namespace run_model::rpc {

// "SIGSEGV (segmentation fault)", "signal 35".
std::string signal_text(int signal);

// What the user can do about a session that ended by this signal: half a sentence, or empty.
std::string signal_advice(int signal);

}  // namespace run_model::rpc
