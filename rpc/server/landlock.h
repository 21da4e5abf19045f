// Landlock (landlock(7)): what a process may still do to the rest of the system.
#pragma once

#include <filesystem>

namespace run_model::rpc {

// From now on this process and all that it starts can write, make and remove files below `folder`
// only, and to /dev/null; from Linux 6.7 on make no TCP connections; from 6.12 on signal only one
// another. Reading, and what is open already, stays as it is. False where the kernel has no
// Landlock, or less of it than Linux 5.19: nothing has changed then. Needs PR_SET_NO_NEW_PRIVS.
bool write_only_below(const std::filesystem::path& folder);

}  // namespace run_model::rpc
