// Turns SIGTERM and SIGINT into something to wait for.
#pragma once

namespace run_model {

// Handles both from now on. Returns a descriptor that becomes readable when one of them comes; it
// stays open. Throws Error(kInternal) when the system refuses.
int watch_stop_signals();

}  // namespace run_model
