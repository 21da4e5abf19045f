#include "runtime/devices/given_memory.h"

#include <run_model/error.h>

namespace run_model {

GivenMemory::GivenMemory(std::string device, const char* kind, const NativeMemory& memory)
    : device_(std::move(device)), kind_(kind), offset_(memory.offset) {
  if (memory.base == nullptr) refuse("is none", std::string("give ") + kind_);
}

void GivenMemory::refuse(const std::string& what, const std::string& hint) const {
  throw Error(ErrorKind::kMismatch,
              "the memory that was given as that of device " + device_ + " " + what, hint);
}

void GivenMemory::refuse_unknown() const {
  refuse("is none that its driver has made", std::string("give ") + kind_);
}

void GivenMemory::require_aligned(std::uint64_t begin, std::uint64_t alignment) const {
  if (begin % alignment == 0) return;
  refuse("does not begin at a multiple of " + std::to_string(alignment) + " bytes" +
             (offset_ == 0 ? "" : ", but at byte " + std::to_string(offset_) + " of its buffer"),
         "DeviceTensor::alignment() says which places will do");
}

void GivenMemory::require_room(std::uint64_t size, std::uint64_t bytes) const {
  if (offset_ <= size && bytes <= size - offset_) return;
  refuse("has " + std::to_string(size) + " bytes, but " + std::to_string(bytes) + " from byte " +
         std::to_string(offset_) + " on are needed");
}

}  // namespace run_model
