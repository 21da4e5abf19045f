// Logs go to standard error, and only warnings and worse unless the user asks for more.
#pragma once

namespace run_model {

// Before the flags are read: sets glog's defaults, so that it neither writes log files nor says
// anything of little weight.
void prepare_logging();

// After the flags are read: --v=N or --logtostderr let informational messages through too.
void start_logging(const char* program_name);

}  // namespace run_model
