#include "tests/runtime/devices/application_memory.h"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/runtime/devices/cuda/stand_in.h"

namespace run_model {
namespace {

template <typename F>
F* driver_function(const char* name) {
  void* const library = ::dlopen(STAND_IN, RTLD_NOW | RTLD_GLOBAL);
  auto* const function = reinterpret_cast<F*>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("there is no ") + name);
  return function;
}

// With the context current, as CUDA's runtime has it.
template <typename Work>
void in_context(const DeviceHandles& handles, const Work& work) {
  driver_function<int(void*)>("cuCtxPushCurrent_v2")(handles.cuda_context);
  work();
  void* popped = nullptr;
  driver_function<int(void**)>("cuCtxPopCurrent_v2")(&popped);
}

}  // namespace

// The stand-in's kernel has no text: it adds here.
void prepare_tested_driver() {
  const StandInGpu gpu;
  driver_function<decltype(stand_in_reset)>("stand_in_reset")(&gpu);
  const auto add = [](const std::uint64_t* arguments, const unsigned*, unsigned) {
    auto* const out = reinterpret_cast<float*>(arguments[0]);
    for (int i = 0; i < 4; ++i) {
      out[i] = reinterpret_cast<const float*>(arguments[1])[i] +
               reinterpret_cast<const float*>(arguments[2])[i];
    }
  };
  driver_function<decltype(stand_in_kernel)>("stand_in_kernel")("add_kernel", add);
}

struct ApplicationMemory::Made {
  std::uint64_t address = 0;
};

ApplicationMemory::ApplicationMemory(std::size_t bytes)
    : handles_(DeviceTensor::handles(kTestedDevice)), made_(std::make_unique<Made>()) {
  in_context(handles_, [&] {
    driver_function<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&made_->address, bytes);
  });
}

ApplicationMemory::~ApplicationMemory() {
  in_context(handles_,
             [&] { driver_function<int(std::uint64_t)>("cuMemFree_v2")(made_->address); });
}

void* ApplicationMemory::data() const { return reinterpret_cast<void*>(made_->address); }

// The stand-in's memory is the program's.
void ApplicationMemory::write(std::size_t offset, const std::vector<float>& values) {
  std::memcpy(static_cast<char*>(data()) + offset, values.data(), 4 * values.size());
}

std::vector<float> ApplicationMemory::read(std::size_t offset, std::size_t count) const {
  std::vector<float> values(count);
  std::memcpy(values.data(), static_cast<const char*>(data()) + offset, 4 * count);
  return values;
}

}  // namespace run_model
