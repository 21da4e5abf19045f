#include "runtime/devices/drivers.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "runtime/devices/opencl/api.h"
#include "runtime/devices/opencl/device.h"

namespace run_model {
namespace {

constexpr char kInstallHint[] =
    "install ocl-icd-libopencl1 and the driver of the GPU's maker (or mesa-opencl-icd, "
    "intel-opencl-icd), or pocl-opencl-icd to compute on the CPU";

class OpenClDriver final : public DeviceDriver {
 public:
  DLDeviceType type() const override { return kDLOpenCL; }
  std::string name() const override { return "opencl"; }

  const Absence& absence() override {
    look();
    return absence_;
  }

  std::size_t count() override {
    look();
    return devices_.size();
  }

  DeviceInfo info(std::size_t index) override {
    const Found& found = at(index);
    return describe_opencl_device(opencl_api(), found.platform, found.device);
  }

  std::unique_ptr<Device> open(std::size_t index) override {
    const Found& found = at(index);
    return open_opencl_device(opencl_api(), found.platform, found.device,
                              {kDLOpenCL, static_cast<int>(index)});
  }

 private:
  struct Found {
    cl_platform_id platform;
    cl_device_id device;
    bool software;
  };

  void look() {
    std::call_once(looked_, [this] {
      try {
        find_devices();
      } catch (const std::exception& error) {
        absence_ = {error.what(), ""};
      }
    });
  }

  void find_devices() {
    const OpenClApi& api = opencl_api();
    if (!api.missing.empty()) {
      absence_ = {api.missing, kInstallHint};
      return;
    }
    cl_uint count = 0;
    // Without any driver the loader reports an error.
    if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
    std::vector<cl_platform_id> platforms(count);
    if (count != 0 && api.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) {
      platforms.clear();
    }
    for (cl_platform_id platform : platforms) add_devices(api, platform);
    std::stable_partition(devices_.begin(), devices_.end(),
                          [](const Found& found) { return !found.software; });
    if (devices_.empty()) {
      absence_ = {platforms.empty() ? "libOpenCL.so.1 finds no driver (ICD)"
                                    : "the OpenCL drivers that are installed find no device",
                  kInstallHint};
    }
  }

  void add_devices(const OpenClApi& api, cl_platform_id platform) {
    cl_uint count = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return;
    std::vector<cl_device_id> devices(count);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) !=
        CL_SUCCESS) {
      return;
    }
    for (cl_device_id device : devices) {
      cl_device_type type = 0;
      api.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr);
      devices_.push_back({platform, device, (type & CL_DEVICE_TYPE_CPU) != 0});
    }
  }

  const Found& at(std::size_t index) {
    look();
    if (index >= devices_.size()) {
      throw Error(ErrorKind::kIncompatible,
                  "there is no device opencl:" + std::to_string(index) + ", but " +
                      std::to_string(devices_.size()) + " of that kind",
                  absence_.reason.empty() ? "--list-devices shows them" : kInstallHint);
    }
    return devices_[index];
  }

  std::once_flag looked_;
  Absence absence_;
  std::vector<Found> devices_;
};

}  // namespace

DeviceDriver& opencl_driver() {
  static auto* driver = new OpenClDriver;
  return *driver;
}

}  // namespace run_model
