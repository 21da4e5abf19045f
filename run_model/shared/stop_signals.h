// The signals that ask a program to end: SIGTERM, SIGINT, and SIGHUP, as when a terminal is closed,
// unless it is ignored, as nohup has it for what it starts.
#pragma once

namespace run_model {

enum class SecondSignal : unsigned char { kIsNoted, kEndsTheProgram };

// From now on they are only noted.  Gives a descriptor that can be read once one has been, for
// poll(): a program that looked at noted_stop_signal() and then waited for something else would
// wait for ever if the signal came in between.  It stays open.
// `second`: what a second one of the same kind does.
int note_stop_signals(SecondSignal second);

// The number of the last one noted; 0 without one.
int noted_stop_signal();

// Waits until standard input can be read, or a signal has been noted; `stop`: what
// note_stop_signals() gave, or -1.  Whether to read.
bool wait_for_standard_input(int stop);

}  // namespace run_model
