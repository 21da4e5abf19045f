#include "runtime/devices/device_memory_view.h"

#include <mutex>
#include <utility>

namespace run_model {
namespace {

void* locked(OpenDevice& device, const std::function<void*(Device&)>& work) {
  const std::lock_guard lock(device.mutex());
  return work(device.device());
}

}  // namespace

DeviceMemoryView::DeviceMemoryView(std::shared_ptr<OpenDevice> device, std::size_t bytes)
    : device_(std::move(device)),
      bytes_(bytes),
      handle_(locked(*device_, [bytes](Device& on) { return on.allocate(bytes); })) {}

DeviceMemoryView::DeviceMemoryView(std::shared_ptr<OpenDevice> device, const NativeMemory& memory,
                                   std::size_t bytes, std::function<void()> release)
    : device_(std::move(device)),
      bytes_(bytes),
      handle_(locked(*device_, [&](Device& on) { return on.adopt(memory, bytes); })),
      release_(std::move(release)) {}

DeviceMemoryView::~DeviceMemoryView() {
  {
    const std::lock_guard lock(device_->mutex());
    device_->device().free(handle_);
  }
  if (release_) release_();
}

NativeMemory DeviceMemoryView::native() const {
  const std::lock_guard lock(device_->mutex());
  return device_->device().native(handle_);
}

void DeviceMemoryView::upload(const void* from) {
  const std::lock_guard lock(device_->mutex());
  device_->device().upload(handle_, 0, from, bytes_);
}

void DeviceMemoryView::download(void* to) const {
  const std::lock_guard lock(device_->mutex());
  device_->device().download(handle_, 0, to, bytes_);
}

bool DeviceMemoryView::overlaps(const DeviceMemoryView& other) const {
  if (device_ != other.device_ || bytes_ == 0 || other.bytes_ == 0) return false;
  const NativeMemory mine = native();
  const NativeMemory theirs = other.native();
  return mine.base == theirs.base && mine.offset < theirs.offset + other.bytes_ &&
         theirs.offset < mine.offset + bytes_;
}

}  // namespace run_model
