// The reason that compiled code gives for a failure, kept apart for each thread.
#pragma once

#include <string>

namespace run_model {

// What TVMAPISetLastError was last told on this thread; empty when nothing was or after a
// clear_last_packed_error(). A parallel loop hands a worker's reason on to the thread that runs it.
const std::string& last_packed_error();

void set_last_packed_error(std::string message) noexcept;
void clear_last_packed_error() noexcept;

}  // namespace run_model
