// What is wrong with memory that an application gives to a device: the same sentences whichever
// driver it is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/devices/device.h"

namespace run_model {

// All functions that refuse throw Error(kMismatch), which names the device.
class GivenMemory {
 public:
  // `device` is how sentences call it: "opencl:0 (NVIDIA …)"; `kind` what `memory.base` has to be:
  // "a cl_mem". Refuses null.
  GivenMemory(std::string device, const char* kind, const NativeMemory& memory);

  // "the memory that was given as that of device … " + `what`.
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = "") const;
  // What the driver does not know.
  [[noreturn]] void refuse_unknown() const;

  // `begin` is the offset, or the address with it where there are addresses.
  void require_aligned(std::uint64_t begin, std::uint64_t alignment) const;
  // `size` bytes are there from the base on, of which `bytes` from the offset on are wanted.
  void require_room(std::uint64_t size, std::uint64_t bytes) const;

 private:
  std::string device_;
  const char* kind_;
  std::size_t offset_;
};

}  // namespace run_model
