// Getting bytes out of the CPU's caches, so that what reads them next is measured as the first
// time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace run_model::rpc {

// By instructions for it on x86-64 and AArch64, where other bytes stay cached. Other CPUs have none
// for programs: there, all that is cached is pushed out by reading kFlushBytes of other memory.
inline constexpr std::size_t kFlushBytes = std::size_t{16} << 20;
void flush_from_caches(const std::vector<std::span<const std::byte>>& areas);

}  // namespace run_model::rpc
