// Pipelines of the kernels that a network brings, made by several threads as soon as the first of
// them is asked for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/devices/code/code_cache.h"
#include "runtime/devices/code/device_code.h"
#include "runtime/devices/vulkan/commands.h"
#include "runtime/devices/vulkan/context.h"
#include "runtime/devices/vulkan/spirv.h"

namespace run_model {

// A kernel with its pipeline, which lives as long as its program.
struct VulkanKernelCode {
  const KernelInfo* info = nullptr;
  const ShaderCode* shader = nullptr;
  ShaderFacts facts;
  VulkanPipeline pipeline;
};

// All of one DeviceCode.
class VulkanProgram {
 public:
  // What is compiled is kept in `disk` for the next start; null for nowhere.
  VulkanProgram(std::shared_ptr<VulkanContext> context, std::shared_ptr<const DeviceCode> code,
                const CodeCache* disk);
  ~VulkanProgram();
  VulkanProgram(const VulkanProgram&) = delete;
  VulkanProgram& operator=(const VulkanProgram&) = delete;

  // Throws what was wrong with this kernel, whatever the others are like.
  const VulkanKernelCode& kernel(const std::string& name);

 private:
  enum class State { kWaiting, kBusy, kDone };
  struct Entry {
    VulkanKernelCode code;
    State state = State::kWaiting;
    std::exception_ptr failure;
  };

  void work();
  // With the lock held, which it gives up meanwhile.
  void make(Entry& entry, std::unique_lock<std::mutex>& lock);
  void make_pipeline(VulkanKernelCode& code) const;

  void open_cache();
  void save_cache() const noexcept;

  std::shared_ptr<VulkanContext> context_;
  std::shared_ptr<const DeviceCode> code_;
  const CodeCache* disk_;
  std::string disk_key_;
  std::size_t loaded_bytes_ = 0;  // of the cache, from disk
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<Entry> entries_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t unfinished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace run_model
