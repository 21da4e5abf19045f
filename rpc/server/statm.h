// What the kernel counts of a process's memory.
#pragma once

#include <cstdint>
#include <string>

namespace run_model::rpc {

// Columns of /proc/PID/statm (proc(5)), from 0.
enum class MemoryKind { kResident = 1, kData = 5 };

// In bytes; 0 when not known. `process` is a number or "self".
std::uint64_t process_memory(const std::string& process, MemoryKind kind);

}  // namespace run_model::rpc
