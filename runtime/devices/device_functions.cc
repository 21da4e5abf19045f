#include "runtime/devices/device_functions.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/device_name.h"
#include "runtime/devices/launch.h"
#include "runtime/threads/call_context.h"

namespace run_model {

constinit std::array<std::atomic<HostCallable*>, kMostCallables> callable_table{};

namespace {

constexpr std::string_view kSetDevice = "__tvm_set_device";
// Devices of one kind that a library may be used on.
constexpr std::size_t kMostDevices = 16;

// Which device of each kind compiled code on this thread has chosen; of others the first.
struct CurrentDevice {
  DLDeviceType type;
  int index;
};
thread_local std::vector<CurrentDevice> current_devices;

int current_device(DLDeviceType type) {
  for (const CurrentDevice& current : current_devices) {
    if (current.type == type) return current.index;
  }
  return 0;
}

void set_current_device(DLDeviceType type, int index) {
  for (CurrentDevice& current : current_devices) {
    if (current.type == type) {
      current.index = index;
      return;
    }
  }
  current_devices.push_back({type, index});
}

std::mutex& table_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::atomic<HostCallable*>* take_slot(HostCallable* callable) {
  static std::size_t next = 0;
  const std::lock_guard lock(table_mutex());
  for (std::size_t tried = 0; tried < kMostCallables; ++tried, ++next) {
    auto& slot = callable_table[next % kMostCallables];
    if (slot.load(std::memory_order_relaxed) != nullptr) continue;
    slot.store(callable, std::memory_order_release);
    return &slot;
  }
  throw Error(ErrorKind::kIncompatible, "the libraries that are open have more than " +
                                            std::to_string(kMostCallables) + " kernels");
}

}  // namespace

int call_handle(void* handle, const PackedValue* values, const int* type_codes,
                int num_values) noexcept {
  try {
    HostCallable* callable =
        static_cast<std::atomic<HostCallable*>*>(handle)->load(std::memory_order_acquire);
    if (callable == nullptr) {
      set_last_packed_error("compiled code calls a kernel of a library that is closed");
      return -1;
    }
    callable->call(values, type_codes, num_values);
    return 0;
  } catch (...) {
    set_last_packed_exception();
  }
  return -1;
}

class DeviceFunctions::Kernel final : public HostCallable {
  struct Prepared {
    std::shared_ptr<OpenDevice> device;  // outlives the kernel
    std::unique_ptr<DeviceKernel> kernel;
  };

 public:
  Kernel(std::shared_ptr<const DeviceCode> code, const KernelInfo& info)
      : code_(std::move(code)), info_(info), reader_(info) {}
  ~Kernel() override {
    for (auto& each : prepared_) delete each.load(std::memory_order_acquire);
  }

  void call(const PackedValue* values, const int* type_codes, int num_values) override {
    const std::span<const PackedValue> all(values, static_cast<std::size_t>(num_values));
    const LaunchSize size = reader_.read(all, type_codes);
    const int index = current_device(code_->device);
    Prepared* prepared =
        index < 0 || static_cast<std::size_t>(index) >= kMostDevices
            ? nullptr
            : prepared_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
    if (prepared == nullptr) prepared = &prepare(open_device({code_->device, index}));
    OpenDevice& device = *prepared->device;
    const std::lock_guard lock(device.mutex());
    check_launch(info_, size, device.device().info(), device.name());
    prepared->kernel->launch(all.first(reader_.num_arguments()), size);
  }

  Prepared& prepare(const std::shared_ptr<OpenDevice>& device) {
    const auto index = static_cast<std::size_t>(device->id().device_id);
    if (index >= kMostDevices) {
      throw Error(ErrorKind::kIncompatible, "device " + device->name() + " is beyond the " +
                                                std::to_string(kMostDevices) +
                                                " that a library may be used on");
    }
    const std::lock_guard lock(device->mutex());
    Prepared* known = prepared_[index].load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<Prepared>();
    made->device = device;
    made->kernel = device->device().kernel(code_, info_.name);
    known = made.release();
    prepared_[index].store(known, std::memory_order_release);
    return *known;
  }

 private:
  std::shared_ptr<const DeviceCode> code_;
  const KernelInfo& info_;  // in code_
  LaunchReader reader_;
  std::array<std::atomic<Prepared*>, kMostDevices> prepared_{};  // by the device's index
};

// Takes the kind and the index of a device.
class DeviceFunctions::SetDevice final : public HostCallable {
 public:
  void call(const PackedValue* values, const int* type_codes, int num_values) override {
    if (num_values != 2 || type_codes[0] != kTypeInt || type_codes[1] != kTypeInt) {
      throw Error(ErrorKind::kModel, in_quotes(kSetDevice) +
                                         " is called with other arguments than the kind and the "
                                         "index of a device");
    }
    const std::int64_t type = values[0].v_int64;
    const std::int64_t index = values[1].v_int64;
    if (!device_type_name(type) || index < 0 || index > std::numeric_limits<int>::max()) {
      throw Error(ErrorKind::kModel, "compiled code asks for device " + std::to_string(index) +
                                         " of type " + std::to_string(type));
    }
    set_current_device(static_cast<DLDeviceType>(type), static_cast<int>(index));
  }
};

DeviceFunctions::DeviceFunctions(std::vector<std::shared_ptr<const DeviceCode>> code)
    : code_(std::move(code)) {}

DeviceFunctions::~DeviceFunctions() {
  const std::lock_guard lock(table_mutex());
  for (const auto& [name, slot] : handles_) slot->store(nullptr, std::memory_order_release);
}

void* DeviceFunctions::add(const std::string& name, std::unique_ptr<HostCallable> callable) {
  callables_.reserve(callables_.size() + 1);
  auto* slot = take_slot(callable.get());
  handles_[name] = slot;
  callables_.push_back(std::move(callable));
  return slot;
}

void* DeviceFunctions::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = handles_.find(name); known != handles_.end()) return known->second;
  if (name == kSetDevice) return add(name, std::make_unique<SetDevice>());
  for (const auto& code : code_) {
    for (const KernelInfo& kernel : code->kernels) {
      if (kernel.name != name) continue;
      auto callable = std::make_unique<Kernel>(code, kernel);
      kernels_[name] = callable.get();
      return add(name, std::move(callable));
    }
  }
  return nullptr;
}

void DeviceFunctions::prepare(const std::shared_ptr<OpenDevice>& device) {
  for (const auto& code : code_) {
    if (code->device != device->id().device_type) continue;
    for (const KernelInfo& kernel : code->kernels) {
      find(kernel.name);
      kernels_.at(kernel.name)->prepare(device);
    }
  }
}

void* allocate_device_workspace(DLDevice id, std::uint64_t bytes) noexcept {
  try {
    const auto device = open_device(id);
    const std::lock_guard lock(device->mutex());
    if (bytes > std::numeric_limits<std::size_t>::max()) {
      throw Error(ErrorKind::kIncompatible, "compiled code asks for " + std::to_string(bytes) +
                                                " bytes of workspace on " + device->name());
    }
    return device->workspace().allocate(static_cast<std::size_t>(bytes));
  } catch (...) {
    set_last_packed_exception();
  }
  return nullptr;
}

bool free_device_workspace(DLDevice id, void* memory) noexcept {
  try {
    const auto device = open_device(id);
    const std::lock_guard lock(device->mutex());
    if (device->workspace().free(memory)) return true;
    set_last_packed_error("the model frees workspace on " + device->name() +
                          " that it did not allocate");
  } catch (...) {
    set_last_packed_exception();
  }
  return false;
}

}  // namespace run_model
