#include "runtime/devices/vulkan/device.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/launch.h"
#include "runtime/devices/vulkan/commands.h"
#include "runtime/devices/vulkan/context.h"
#include "runtime/devices/vulkan/handles.h"
#include "runtime/devices/vulkan/marks.h"
#include "runtime/devices/vulkan/programs.h"
#include "runtime/devices/vulkan/queue.h"

namespace run_model {
namespace {

// Copies by way of staging memory go in pieces of this size.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

VulkanRange piece(const VulkanRange& range, std::uint64_t offset, std::uint64_t bytes) {
  return {range.block, range.offset + offset, bytes};
}

// As handle_of() in handles.cc: pointers on 64-bit machines, and numbers elsewhere.
template <typename Handle>
void* pointer_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return handle;
  } else {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
  }
}

VulkanMemory* as_memory(const void* handle) {
  return static_cast<VulkanMemory*>(const_cast<void*>(handle));
}

class VulkanDevice;

class VulkanRecording final : public DeviceRecording {
 public:
  VulkanRecording(VulkanDevice& device, const std::shared_ptr<VulkanContext>& context)
      : device_(device), commands_(context) {}
  ~VulkanRecording() override;
  VulkanRecording(const VulkanRecording&) = delete;
  VulkanRecording& operator=(const VulkanRecording&) = delete;

  void replay() override;
  VulkanCommands& commands() { return commands_; }

 private:
  VulkanDevice& device_;
  VulkanCommands commands_;
  VulkanQueue::Batch last_ = 0;
};

class VulkanKernel final : public DeviceKernel {
 public:
  VulkanKernel(VulkanDevice& device, const VulkanKernelCode& code) : device_(device), code_(code) {}
  void launch(std::span<const PackedValue> arguments, const LaunchSize& size) override;

 private:
  VulkanDevice& device_;
  const VulkanKernelCode& code_;
  // Kept for their capacity.
  std::vector<VulkanAccess> buffers_;
  std::vector<std::uint64_t> scalars_;
};

class VulkanDevice final : public Device {
 public:
  VulkanDevice(const VulkanPhysicalDevice& physical, int index, const VulkanOptions& options);
  ~VulkanDevice() override;
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  DLDevice id() const override { return {kDLVulkan, index_}; }
  const DeviceInfo& info() const override { return context_->physical().info; }
  void require_alive() const override { context_->require_alive(); }

  void* allocate(std::size_t bytes) override;
  void* part(void* memory, std::size_t offset, std::size_t bytes) override;
  std::size_t part_alignment() const override {
    return static_cast<std::size_t>(handles_->alignment());
  }
  void* adopt(const NativeMemory& memory, std::size_t bytes) override {
    return handles_->adopt(memory, bytes);
  }
  NativeMemory native(const void* memory) const override;
  DeviceHandles native_handles() const override;
  void free(void* memory) noexcept override;
  std::size_t allocated_bytes() const override { return handles_->allocated_bytes(); }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    return host_memory_.allocate(context_, bytes);
  }

  void upload(void* to, std::size_t to_offset, const void* from, std::size_t bytes) override;
  void download(const void* from, std::size_t from_offset, void* to, std::size_t bytes) override;
  void copy(const void* from, std::size_t from_offset, void* to, std::size_t to_offset,
            std::size_t bytes) override;

  std::unique_ptr<DeviceKernel> kernel(std::shared_ptr<const DeviceCode> code,
                                       const std::string& name) override;

  void submit() override;
  void wait() override;

  Mark mark() override;
  double seconds_between(Mark first, Mark second) override;
  void forget_marks() override { marks_->forget(); }

  std::unique_ptr<DeviceRecording> record(const std::function<void()>& work) override;

  // Where launches and copies go; touch() notes that they use memory.
  VulkanCommands& commands();
  void touch(VulkanMemory& memory);
  void after_launch() {
    if (recording_ == nullptr) queue_->submit_if_large();
  }
  VulkanQueue& queue() { return *queue_; }
  VulkanQueue::Batch replay(const VulkanCommands& recorded);
  const VulkanContext& context() const { return *context_; }

 private:
  VulkanRange bytes_of(const void* memory, std::size_t offset, std::size_t bytes) const;
  bool is_idle(const VulkanMemory& memory);
  void wait_until_idle(const VulkanMemory& memory);
  void refuse_in_recording(const char* what) const;

  int index_;
  std::shared_ptr<VulkanContext> context_;
  VulkanHostMemory host_memory_;
  // Freed in the opposite order, once the device is idle; left where it never will be.
  std::unique_ptr<VulkanHandles> handles_;
  std::map<const DeviceCode*, std::unique_ptr<VulkanProgram>> programs_;
  std::unique_ptr<VulkanQueue> queue_;
  std::unique_ptr<VulkanMarks> marks_;
  VulkanRecording* recording_ = nullptr;  // that launches go to
  VulkanQueue::Batch last_replay_ = 0;
};

VulkanDevice::VulkanDevice(const VulkanPhysicalDevice& physical, int index,
                           const VulkanOptions& options)
    : index_(index),
      context_(std::make_shared<VulkanContext>(physical, index, options)),
      handles_(std::make_unique<VulkanHandles>(context_)),
      queue_(std::make_unique<VulkanQueue>(context_)),
      marks_(std::make_unique<VulkanMarks>(context_, *queue_)) {}

VulkanDevice::~VulkanDevice() {
  if (!context_->is_stuck()) context_->vk().DeviceWaitIdle(context_->handle());
}

void* VulkanDevice::allocate(std::size_t bytes) {
  VulkanMemory* const memory = handles_->allocate(bytes);
  if (memory->range.mapped() != nullptr) {
    std::memset(memory->range.mapped(), 0, static_cast<std::size_t>(memory->range.bytes));
    return memory;
  }
  try {
    // Not into a recording, which would do it at every replay.
    queue_->open().fill_with_zeros(memory->range);
    memory->used_by = queue_->current();
  } catch (...) {
    handles_->free(memory);
    throw;
  }
  return memory;
}

void* VulkanDevice::part(void* memory, std::size_t offset, std::size_t bytes) {
  bytes_of(memory, offset, bytes);
  if (offset % part_alignment() != 0) {
    throw Error(ErrorKind::kInternal, "a part of a buffer begins at byte " +
                                          std::to_string(offset) + ", which " + context_->name() +
                                          " does not allow");
  }
  return handles_->part(as_memory(memory), offset, bytes);
}

NativeMemory VulkanDevice::native(const void* memory) const {
  const VulkanRange& range = as_memory(memory)->range;
  return {pointer_of(range.buffer()), static_cast<std::size_t>(range.offset)};
}

DeviceHandles VulkanDevice::native_handles() const {
  DeviceHandles handles;
  handles.vulkan_instance = context_->physical().instance->handle;
  handles.vulkan_physical_device = context_->physical().handle;
  handles.vulkan_device = context_->handle();
  handles.vulkan_queue = context_->queue();
  handles.vulkan_queue_family = context_->physical().queue_family;
  return handles;
}

void VulkanDevice::free(void* memory) noexcept {
  if (memory == nullptr || context_->is_stuck()) return;
  VulkanMemory* const handle = as_memory(memory);
  try {
    if (handle->whole == handle) wait_until_idle(*handle);
  } catch (const std::exception&) {
    // A lost device uses nothing any more, and a stuck one keeps it.
    if (context_->is_stuck()) return;
  }
  handles_->free(handle);
}

VulkanRange VulkanDevice::bytes_of(const void* memory, std::size_t offset,
                                   std::size_t bytes) const {
  const VulkanRange& range = as_memory(memory)->range;
  if (offset > range.bytes || bytes > range.bytes - offset) {
    throw Error(ErrorKind::kInternal, "bytes " + std::to_string(offset) + " to " +
                                          std::to_string(offset + bytes) + " of a buffer of " +
                                          std::to_string(range.bytes) + " bytes on " +
                                          context_->name() + " were asked for");
  }
  return piece(range, offset, bytes);
}

bool VulkanDevice::is_idle(const VulkanMemory& memory) {
  return queue_->is_done(memory.whole->used_by) &&
         (!memory.whole->recorded || queue_->is_done(last_replay_));
}

void VulkanDevice::wait_until_idle(const VulkanMemory& memory) {
  queue_->wait_for(memory.whole->used_by);
  if (memory.whole->recorded) queue_->wait_for(last_replay_);
}

void VulkanDevice::refuse_in_recording(const char* what) const {
  if (recording_ != nullptr) {
    throw Error(ErrorKind::kInternal,
                std::string("what is recorded for ") + context_->name() + " cannot hold " + what);
  }
}

VulkanCommands& VulkanDevice::commands() {
  return recording_ != nullptr ? recording_->commands() : queue_->open();
}

void VulkanDevice::touch(VulkanMemory& memory) {
  if (recording_ != nullptr) {
    memory.whole->recorded = true;
  } else {
    memory.whole->used_by = queue_->current();
  }
}

void VulkanDevice::upload(void* to, std::size_t to_offset, const void* from, std::size_t bytes) {
  refuse_in_recording("an upload");
  const VulkanRange range = bytes_of(to, to_offset, bytes);
  context_->require_alive();
  if (bytes == 0) return;
  VulkanMemory& memory = *as_memory(to);
  if (range.mapped() != nullptr && is_idle(memory)) {
    std::memcpy(range.mapped(), from, bytes);
    return;
  }
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t count = std::min(kPieceBytes, bytes - done);
    VulkanCommands& commands = queue_->open();
    const VulkanRange staging = commands.host_memory(count);
    std::memcpy(staging.mapped(), static_cast<const std::byte*>(from) + done, count);
    commands.copy(staging, piece(range, done, count));
    touch(memory);
    queue_->submit_if_large();
    done += count;
  }
}

void VulkanDevice::download(const void* from, std::size_t from_offset, void* to,
                            std::size_t bytes) {
  refuse_in_recording("a download");
  const VulkanRange range = bytes_of(from, from_offset, bytes);
  context_->require_alive();
  if (bytes == 0) return;
  VulkanMemory& memory = *as_memory(from);
  if (range.mapped() != nullptr && range.block->cached()) {
    wait_until_idle(memory);
    std::memcpy(to, range.mapped(), bytes);
    return;
  }
  const VulkanRange pinned = host_memory_.find(to, bytes);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t count = pinned.block != nullptr ? bytes : std::min(kPieceBytes, bytes - done);
    VulkanCommands& commands = queue_->open();
    const VulkanRange staging = pinned.block != nullptr ? pinned : commands.host_memory(count);
    commands.copy(piece(range, done, count), staging);
    touch(memory);
    queue_->wait();
    if (pinned.block == nullptr) {
      std::memcpy(static_cast<std::byte*>(to) + done, staging.mapped(), count);
    }
    done += count;
  }
}

void VulkanDevice::copy(const void* from, std::size_t from_offset, void* to, std::size_t to_offset,
                        std::size_t bytes) {
  const VulkanRange source = bytes_of(from, from_offset, bytes);
  const VulkanRange target = bytes_of(to, to_offset, bytes);
  if (bytes == 0) return;
  commands().copy(source, target);
  touch(*as_memory(from));
  touch(*as_memory(to));
  after_launch();
}

std::unique_ptr<DeviceKernel> VulkanDevice::kernel(std::shared_ptr<const DeviceCode> code,
                                                   const std::string& name) {
  std::unique_ptr<VulkanProgram>& program = programs_[code.get()];
  if (!program)
    program = std::make_unique<VulkanProgram>(context_, std::move(code), context_->options().disk);
  return std::make_unique<VulkanKernel>(*this, program->kernel(name));
}

void VulkanDevice::submit() {
  context_->require_alive();
  refuse_in_recording("a hand-over");
  queue_->submit();
}

void VulkanDevice::wait() {
  context_->require_alive();
  refuse_in_recording("a wait");
  queue_->wait();
}

Device::Mark VulkanDevice::mark() {
  refuse_in_recording("a time stamp");
  return marks_->add();
}

double VulkanDevice::seconds_between(Mark first, Mark second) {
  refuse_in_recording("a wait");
  return marks_->seconds_between(first, second);
}

std::unique_ptr<DeviceRecording> VulkanDevice::record(const std::function<void()>& work) {
  refuse_in_recording("another recording");
  auto recording = std::make_unique<VulkanRecording>(*this, context_);
  recording->commands().begin(true);
  recording_ = recording.get();
  try {
    work();
  } catch (...) {
    recording_ = nullptr;
    throw;
  }
  recording_ = nullptr;
  recording->commands().end();
  if (recording->commands().count() == 0) return nullptr;
  return recording;
}

VulkanQueue::Batch VulkanDevice::replay(const VulkanCommands& recorded) {
  refuse_in_recording("another recording");
  last_replay_ = queue_->submit_with(recorded);
  return last_replay_;
}

VulkanRecording::~VulkanRecording() {
  try {
    device_.queue().wait_for(last_);
  } catch (const std::exception&) {
    // A lost device uses nothing any more; of a stuck one nothing is freed.
  }
}

void VulkanRecording::replay() { last_ = device_.replay(commands_); }

void VulkanKernel::launch(std::span<const PackedValue> arguments, const LaunchSize& size) {
  const KernelInfo& info = *code_.info;
  const auto refuse = [&info](const std::string& what) {
    throw Error(ErrorKind::kMismatch, "kernel " + in_quotes(info.name) + " " + what);
  };
  std::uint32_t groups[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (size.threads[i] != code_.facts.threads[i]) {
      refuse("has groups of " + std::to_string(code_.facts.threads[i]) + " threads in dimension " +
             std::to_string(i) + " and was launched with " + std::to_string(size.threads[i]));
    }
    groups[i] = static_cast<std::uint32_t>(size.groups[i]);
  }
  if (size.dynamic_shared_bytes != 0) {
    refuse("was launched with dynamic shared memory, which Vulkan does not have");
  }
  buffers_.clear();
  scalars_.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const DLDataType& type = info.argument_types[i];
    if (type.code == kDLOpaqueHandle) {
      if (arguments[i].v_handle == nullptr) refuse("was given no buffer");
      const auto binding = code_.facts.bindings.find(static_cast<std::uint32_t>(i));
      buffers_.push_back({as_memory(arguments[i].v_handle)->range,
                          binding != code_.facts.bindings.end() && binding->second.written});
      continue;
    }
    std::uint64_t word = 0;
    const ScalarBytes scalar = scalar_bytes(arguments[i], type);
    std::memcpy(&word, scalar.bytes.data(), scalar.size);
    scalars_.push_back(word);
  }
  device_.commands().launch(code_.pipeline, buffers_, scalars_, groups);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    device_.touch(*as_memory(arguments[i].v_handle));
  }
  device_.after_launch();
}

}  // namespace

std::unique_ptr<Device> open_vulkan_device(const VulkanPhysicalDevice& physical, int index,
                                           const VulkanOptions& options) {
  return std::make_unique<VulkanDevice>(physical, index, options);
}

}  // namespace run_model
