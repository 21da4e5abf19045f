// The machine, the threads, their sweep and the memory as text and as JSON.
#pragma once

#include <string>

#include "run_model/run_model/machine/context.h"
#include "run_model/run_model/machine/sweep.h"
#include "run_model/shared/json.h"
#include "run_model/shared/memory_stages.h"
#include "run_model/shared/thread_plan.h"

namespace run_model {

// "Threads: 2 on CPU 4-5 (…), idle ones wait 100 us before they sleep", then one "Warning: …" for
// each notice.
std::string thread_plan_text(const ThreadPlan& plan);
// The report's key "thread_plan" (its "threads" is the number, as ever).
Json thread_plan_json(const ThreadPlan& plan);

// A few lines, then one "Warning: …" for each warning.
std::string machine_text(const MachineContext& machine);
// The report's key "machine".
Json machine_json(const MachineContext& machine);

// A table of the stages and the runtime's own account, in MiB.
std::string memory_text(const MemoryStages& memory);
// The report's key "memory", in bytes.
Json memory_json(const MemoryStages& memory);

std::string thread_sweep_text(const ThreadSweep& sweep);
// The report's key "sweep".
Json thread_sweep_json(const ThreadSweep& sweep);

}  // namespace run_model
