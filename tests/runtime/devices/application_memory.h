// Memory of a device that an application has made with the driver's own functions: each kind of
// device has a source for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <dlpack/dlpack.h>

#include <run_model/device_tensor.h>

namespace run_model {

inline constexpr DLDevice kTestedDevice{DEVICE_TYPE, 0};

// What has to be done before the driver is opened.
void prepare_tested_driver();

class ApplicationMemory {
 public:
  explicit ApplicationMemory(std::size_t bytes);
  ~ApplicationMemory();
  ApplicationMemory(const ApplicationMemory&) = delete;
  ApplicationMemory& operator=(const ApplicationMemory&) = delete;

  // As DLPack's `data` has it.
  void* data() const;
  void write(std::size_t offset, const std::vector<float>& values);
  std::vector<float> read(std::size_t offset, std::size_t count) const;

 private:
  struct Made;
  DeviceHandles handles_;
  std::unique_ptr<Made> made_;
};

}  // namespace run_model
