#include "runtime/devices/cuda/device.h"

#include <string>
#include <utility>

#include <run_model/tensor.h>
#include "runtime/devices/cuda/context.h"
#include "runtime/devices/cuda/memory.h"
#include "runtime/devices/cuda/programs.h"
#include "runtime/devices/cuda/stream.h"

namespace run_model::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<GpuContext> gpu, int index, const DeviceInfo& info)
      : gpu_(std::move(gpu)),
        id_{kDLCUDA, index},
        info_(info),
        memory_(gpu_, static_cast<std::size_t>(info.memory_bytes)),
        marks_(*gpu_),
        programs_(*gpu_, info) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  ~CudaDevice() override {
    try {
      const CurrentContext current(*gpu_);
      gpu_->wait();
      marks_.destroy();
      programs_.unload();
      memory_.free_all();
    } catch (const std::exception&) {
      // The device was lost, and everything in it.
    }
  }

  DLDevice id() const override { return id_; }
  const DeviceInfo& info() const override { return info_; }
  void require_alive() const override { gpu_->require_alive(); }

  void* allocate(std::size_t bytes) override {
    const CurrentContext current(*gpu_);
    return memory_.allocate(bytes);
  }
  void* part(void* memory, std::size_t offset, std::size_t bytes) override {
    return memory_.part(memory, offset, bytes);
  }
  std::size_t part_alignment() const override { return Memory::kAlignment; }
  void* adopt(const NativeMemory& memory, std::size_t bytes) override {
    const CurrentContext current(*gpu_);
    return memory_.adopt(memory, bytes, id_.device_id);
  }
  std::size_t adopted_alignment() const override { return kTensorAlignment; }
  NativeMemory native(const void* memory) const override { return {const_cast<void*>(memory), 0}; }
  DeviceHandles native_handles() const override {
    DeviceHandles handles;
    handles.cuda_context = gpu_->context();
    return handles;
  }
  void free(void* memory) noexcept override {
    try {
      const CurrentContext current(*gpu_);
      memory_.free(memory);
    } catch (const std::exception&) {
      // The device was lost, and its memory with it.
    }
  }
  std::size_t allocated_bytes() const override { return memory_.allocated_bytes(); }

  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    const CurrentContext current(*gpu_);
    return memory_.allocate_host(bytes);
  }

  // Both wait: from pinned memory the GPU reads, and to all memory it writes, some time after the
  // call; and before it, because what is not pinned the driver copies itself, in its turn.
  void upload(void* to, std::size_t to_offset, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(*gpu_);
    gpu_->wait();
    gpu_->check(gpu_->api().upload(Memory::address(to, to_offset), from, bytes, gpu_->stream()),
                "copying to it");
    gpu_->wait();
  }
  void download(const void* from, std::size_t from_offset, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(*gpu_);
    gpu_->wait();
    gpu_->check(gpu_->api().download(to, Memory::address(from, from_offset), bytes, gpu_->stream()),
                "copying from it");
    gpu_->wait();
  }
  void copy(const void* from, std::size_t from_offset, void* to, std::size_t to_offset,
            std::size_t bytes) override {
    if (bytes == 0) return;
    const CurrentContext current(*gpu_);
    gpu_->check(gpu_->api().copy(Memory::address(to, to_offset), Memory::address(from, from_offset),
                                 bytes, gpu_->stream()),
                "copying within it");
  }

  std::unique_ptr<DeviceKernel> kernel(std::shared_ptr<const DeviceCode> code,
                                       const std::string& name) override {
    const CurrentContext current(*gpu_);
    return programs_.kernel(code, name);
  }

  // What is asked for is with the driver at once.
  void submit() override {}
  void wait() override {
    const CurrentContext current(*gpu_);
    gpu_->wait();
  }

  Mark mark() override {
    const CurrentContext current(*gpu_);
    return marks_.mark();
  }
  double seconds_between(Mark first, Mark second) override {
    const CurrentContext current(*gpu_);
    return marks_.seconds_between(first, second);
  }
  void forget_marks() override { marks_.forget(); }

  std::unique_ptr<DeviceRecording> record(const std::function<void()>& work) override {
    const CurrentContext current(*gpu_);
    return cuda::record(gpu_, work);
  }

 private:
  std::shared_ptr<GpuContext> gpu_;
  DLDevice id_;
  DeviceInfo info_;
  Memory memory_;
  Marks marks_;
  Programs programs_;
};

}  // namespace

std::unique_ptr<Device> open_device(const Api& api, DeviceNumber device, int index,
                                    const DeviceInfo& info, std::uint64_t patience_nanoseconds) {
  const std::string label = "cuda:" + std::to_string(index) + " (" + info.name + ")";
  auto gpu = std::make_shared<GpuContext>(api, device, label, patience_nanoseconds);
  return std::make_unique<CudaDevice>(std::move(gpu), index, info);
}

}  // namespace run_model::cuda
