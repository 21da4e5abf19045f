// The signals that ask a program to end: SIGTERM, SIGINT, and SIGHUP, as when a terminal is closed,
// unless it is ignored, as nohup has it for what it starts.
#pragma once

namespace run_model {

// Has `handler` called for each of them; `flags` are sigaction's.
void handle_stop_signals(void (*handler)(int), int flags);

// From now on the first of each is only noted, and interrupts what waits for input; a second one of
// the same kind ends the program.
void note_stop_signals();

// The number of the last one noted; 0 without one.
int noted_stop_signal();

}  // namespace run_model
