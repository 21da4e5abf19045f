// Memory of the GPU, which is the program's own, and copies.
#include "tests/runtime/devices/cuda/stand_in_state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stand_in {

EXPORTED int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  State& s = state();
  const int result = enter_context("cuMemAlloc_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (bytes == 0) return reject("cuMemAlloc_v2", "no bytes");
  std::size_t used = bytes;
  for (const auto& [start, size] : s.memory) used += size;
  if (used > s.gpu.memory_bytes) return kNoMemory;
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment + kGuardBytes;
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(kAlignment, whole));
  std::memset(memory, 0xcd, bytes);
  std::memset(memory + bytes, kGuard, whole - bytes);
  *address = reinterpret_cast<std::uint64_t>(memory);
  s.memory[*address] = bytes;
  return kOk;
}

// The piece that an address is in; the end where it is none.
std::map<std::uint64_t, std::size_t>::const_iterator find_memory(std::uint64_t address) {
  const auto& memory = state().memory;
  auto found = memory.upper_bound(address);
  if (found == memory.begin()) return memory.end();
  --found;
  return address - found->first < found->second ? found : memory.end();
}

EXPORTED int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  const int result = enter_context("cuPointerGetAttribute", std::to_string(attribute));
  if (result != kOk) return result;
  constexpr int kMemoryType = 2;
  constexpr int kDeviceOrdinal = 9;
  constexpr unsigned kDevice = 2;
  if (find_memory(address) == state().memory.end()) return kInvalidValue;
  if (attribute == kMemoryType) {
    *static_cast<unsigned*>(value) = kDevice;
  } else if (attribute == kDeviceOrdinal) {
    *static_cast<int*>(value) = 0;
  } else {
    return reject("cuPointerGetAttribute", "an attribute that is not in use");
  }
  return kOk;
}

EXPORTED int cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes,
                                     std::uint64_t address) {
  const int result = enter_context("cuMemGetAddressRange_v2");
  if (result != kOk) return result;
  const auto found = find_memory(address);
  if (found == state().memory.end()) return reject("cuMemGetAddressRange_v2", "no such memory");
  *base = found->first;
  *bytes = found->second;
  return kOk;
}

EXPORTED int cuMemFree_v2(std::uint64_t address) {
  State& s = state();
  enter_context("cuMemFree_v2");
  const auto found = s.memory.find(address);
  if (found == s.memory.end()) return reject("cuMemFree_v2", "no such memory");
  const auto* end = static_cast<unsigned char*>(pointer(address)) + found->second;
  if (std::any_of(end, end + kGuardBytes, [](unsigned char byte) { return byte != kGuard; })) {
    complain("cuMemFree_v2: something was written behind " + bytes_text(found->second));
  }
  s.memory.erase(found);
  for (const Stream* stream : s.streams) {
    if (!stream->waiting.empty()) complain("cuMemFree_v2: work is waiting");
  }
  s.freed[address] = pointer(address);
  return kOk;
}

EXPORTED int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes,
                             Stream* stream) {
  const int result = enter_context("cuMemsetD8Async", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes)) return reject("cuMemsetD8Async", "out of bounds");
  return enqueue("cuMemsetD8Async", stream, [=] { std::memset(pointer(to), value, bytes); });
}

EXPORTED int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes,
                                  Stream* stream) {
  const int result = enter_context("cuMemcpyHtoDAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes)) return reject("cuMemcpyHtoDAsync_v2", "out of bounds");
  if (is_pinned(from, bytes)) {
    return enqueue("cuMemcpyHtoDAsync_v2", stream, [=] { std::memcpy(pointer(to), from, bytes); });
  }
  const std::string staged(static_cast<const char*>(from), bytes);
  return enqueue("cuMemcpyHtoDAsync_v2", stream,
                 [=] { std::memcpy(pointer(to), staged.data(), bytes); });
}

EXPORTED int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, Stream* stream) {
  const int result = enter_context("cuMemcpyDtoHAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(from, bytes)) return reject("cuMemcpyDtoHAsync_v2", "out of bounds");
  return enqueue("cuMemcpyDtoHAsync_v2", stream, [=] { std::memcpy(to, pointer(from), bytes); });
}

EXPORTED int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                                  Stream* stream) {
  const int result = enter_context("cuMemcpyDtoDAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes) || !is_device_range(from, bytes)) {
    return reject("cuMemcpyDtoDAsync_v2", "out of bounds");
  }
  if (to < from + bytes && from < to + bytes) return reject("cuMemcpyDtoDAsync_v2", "overlap");
  return enqueue("cuMemcpyDtoDAsync_v2", stream,
                 [=] { std::memcpy(pointer(to), pointer(from), bytes); });
}

EXPORTED int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  const int result = enter_context("cuMemHostAlloc", bytes_text(bytes));
  if (result != kOk) return result;
  if (bytes == 0 || flags != 1) return reject("cuMemHostAlloc", "no bytes, or flags");
  constexpr std::size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  state().pinned[*memory] = bytes;
  return kOk;
}

EXPORTED int cuMemFreeHost(void* memory) {
  enter_context("cuMemFreeHost");
  if (state().pinned.erase(memory) == 0) return reject("cuMemFreeHost", "no such memory");
  std::free(memory);
  return kOk;
}

}  // namespace stand_in
