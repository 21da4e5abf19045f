#include "runtime/devices/vulkan/programs.h"

#include <algorithm>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// Beside the one that asks. Drivers take some tens of megabytes for each.
constexpr std::size_t kMostThreads = 7;

}  // namespace

VulkanProgram::VulkanProgram(std::shared_ptr<VulkanContext> context,
                             std::shared_ptr<const DeviceCode> code, const CodeCache* disk)
    : context_(std::move(context)), code_(std::move(code)), disk_(disk) {
  std::unordered_map<std::string, const ShaderCode*> shaders;
  for (const ShaderCode& shader : code_->shaders) shaders.emplace(shader.kernel, &shader);
  for (const KernelInfo& info : code_->kernels) {
    const auto shader = shaders.find(info.name);
    if (shader == shaders.end()) continue;
    places_.emplace(info.name, entries_.size());
    entries_.emplace_back().code = {&info, shader->second, {}, {}};
  }
  unfinished_ = entries_.size();
  open_cache();
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::size_t count = std::min({cores - 1, kMostThreads, entries_.size()});
  try {
    for (; count > 0; --count) threads_.emplace_back(&VulkanProgram::work, this);
  } catch (const std::system_error&) {
    // Those that there are, or the one that asks, do the work.
  }
}

VulkanProgram::~VulkanProgram() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  if (context_->is_stuck()) return;
  const VulkanDeviceFunctions& vk = context_->vk();
  vk.DestroyPipelineCache(context_->handle(), cache_, nullptr);
  for (const Entry& entry : entries_) {
    const VulkanPipeline& pipeline = entry.code.pipeline;
    vk.DestroyPipeline(context_->handle(), pipeline.pipeline, nullptr);
    vk.DestroyPipelineLayout(context_->handle(), pipeline.layout, nullptr);
    vk.DestroyDescriptorSetLayout(context_->handle(), pipeline.set_layout, nullptr);
  }
}

// One cache for each network: its entry on disk is read and written as a whole.
void VulkanProgram::open_cache() {
  std::vector<std::byte> bytes;
  if (disk_ != nullptr) {
    const VkPhysicalDeviceProperties& device = context_->physical().properties;
    std::string shaders;
    for (const ShaderCode& shader : code_->shaders) {
      shaders += shader.kernel + "\n";
      shaders += as_text(std::as_bytes(std::span(shader.words)));
    }
    disk_key_ =
        CodeCache::key({"vulkan", context_->physical().info.driver, device.deviceName,
                        std::to_string(device.vendorID) + "." + std::to_string(device.deviceID) +
                            "." + std::to_string(device.driverVersion),
                        as_text(std::as_bytes(std::span(device.pipelineCacheUUID))), shaders});
    bytes = disk_->find(disk_key_).value_or(std::vector<std::byte>());
    loaded_bytes_ = bytes.size();
  }
  VkPipelineCacheCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  create.initialDataSize = bytes.size();
  create.pInitialData = bytes.data();
  context_->check(context_->vk().CreatePipelineCache(context_->handle(), &create, nullptr, &cache_),
                  "making a cache of pipelines");
}

void VulkanProgram::save_cache() const noexcept {
  if (disk_ == nullptr) return;
  std::size_t size = 0;
  const VulkanDeviceFunctions& vk = context_->vk();
  if (vk.GetPipelineCacheData(context_->handle(), cache_, &size, nullptr) != VK_SUCCESS) return;
  // A cache only grows.
  if (size <= loaded_bytes_) return;
  try {
    std::vector<std::byte> bytes(size);
    if (vk.GetPipelineCacheData(context_->handle(), cache_, &size, bytes.data()) == VK_SUCCESS) {
      disk_->keep(disk_key_, std::span(bytes).first(size));
    }
  } catch (const std::bad_alloc&) {
    // It is compiled again next time.
  }
}

void VulkanProgram::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = std::ranges::find(entries_, State::kWaiting, &Entry::state);
    if (next == entries_.end()) return;
    make(*next, lock);
  }
}

void VulkanProgram::make(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = State::kBusy;
  lock.unlock();
  std::exception_ptr failure;
  try {
    make_pipeline(entry.code);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  entry.failure = failure;
  entry.state = State::kDone;
  changed_.notify_all();
  if (--unfinished_ > 0) return;
  lock.unlock();
  save_cache();
  lock.lock();
}

const VulkanKernelCode& VulkanProgram::kernel(const std::string& name) {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    throw Error(ErrorKind::kMismatch,
                "the library's code for Vulkan has no kernel " + in_quotes(name));
  }
  Entry& entry = entries_[place->second];
  std::unique_lock lock(mutex_);
  if (entry.state == State::kWaiting) make(entry, lock);
  changed_.wait(lock, [&entry] { return entry.state == State::kDone; });
  if (entry.failure) std::rethrow_exception(entry.failure);
  return entry.code;
}

void VulkanProgram::make_pipeline(VulkanKernelCode& code) const {
  const VulkanDeviceFunctions& vk = context_->vk();
  VkDevice device = context_->handle();
  code.facts = read_shader(code.shader->words, code.info->name);
  context_->features().check(code.facts, *code.shader, *code.info);
  const std::string what = "compiling kernel " + in_quotes(code.info->name);

  std::vector<VkDescriptorSetLayoutBinding> bindings;
  std::uint32_t scalars = 0;
  const auto bind = [&bindings](VkDescriptorType type) {
    bindings.push_back({static_cast<std::uint32_t>(bindings.size()), type, 1,
                        VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  };
  for (const DLDataType& type : code.info->argument_types) {
    if (type.code == kDLOpaqueHandle) {
      bind(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    } else {
      ++scalars;
    }
  }
  VulkanPipeline& pipeline = code.pipeline;
  pipeline.scalars_in_buffer = (code.shader->flags & 1) != 0;
  if (pipeline.scalars_in_buffer && scalars > 0) bind(VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);

  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  context_->check(vk.CreateDescriptorSetLayout(device, &set, nullptr, &pipeline.set_layout), what);

  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 * scalars};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &pipeline.set_layout;
  layout.pushConstantRangeCount = scalars > 0 && !pipeline.scalars_in_buffer ? 1 : 0;
  layout.pPushConstantRanges = &range;
  context_->check(vk.CreatePipelineLayout(device, &layout, nullptr, &pipeline.layout), what);

  VkShaderModuleCreateInfo shader{};
  shader.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  shader.codeSize = code.shader->words.size() * sizeof(std::uint32_t);
  shader.pCode = code.shader->words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  context_->check(vk.CreateShaderModule(device, &shader, nullptr, &module), what);
  VkComputePipelineCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module;
  create.stage.pName = code.info->name.c_str();
  create.layout = pipeline.layout;
  const VkResult result =
      vk.CreateComputePipelines(device, cache_, 1, &create, nullptr, &pipeline.pipeline);
  vk.DestroyShaderModule(device, module, nullptr);
  context_->check(result, what);
}

}  // namespace run_model
