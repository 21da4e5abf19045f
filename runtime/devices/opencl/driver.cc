#include "runtime/devices/drivers.h"

#include <algorithm>
#include <cstdint>
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

// Extensions' queries of the width of a subgroup; OpenCL itself says it of kernels only.
constexpr cl_device_info kWarpSizeNvidia = 0x4003;
constexpr cl_device_info kWavefrontWidthAmd = 0x4043;

std::string without_ends(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

class Query {
 public:
  Query(const OpenClApi& api, cl_device_id device) : api_(api), device_(device) {}

  std::string text(cl_device_info what) const {
    std::size_t size = 0;
    if (api_.clGetDeviceInfo(device_, what, 0, nullptr, &size) != CL_SUCCESS) return "";
    std::string value(size, '\0');
    if (api_.clGetDeviceInfo(device_, what, size, value.data(), nullptr) != CL_SUCCESS) return "";
    return without_ends(value);
  }

  // 0 where the driver does not say.
  template <typename T>
  std::uint64_t number(cl_device_info what) const {
    T value{};
    const cl_int status = api_.clGetDeviceInfo(device_, what, sizeof(value), &value, nullptr);
    return status == CL_SUCCESS ? static_cast<std::uint64_t>(value) : 0;
  }

 private:
  const OpenClApi& api_;
  cl_device_id device_;
};

std::string platform_name(const OpenClApi& api, cl_platform_id platform) {
  std::size_t size = 0;
  if (api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string name(size, '\0');
  api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, name.data(), nullptr);
  return without_ends(name);
}

// "OpenCL 3.0 PoCL HSTR: …" begins with two words that the specification lays down.
std::string version_words(const std::string& text) {
  const std::size_t first = text.find(' ');
  return first == std::string::npos ? text : text.substr(0, text.find(' ', first + 1));
}

// Throws Error(kIncompatible) where the driver does not answer.
DeviceInfo opencl_device_info(const OpenClApi& api, cl_platform_id platform, cl_device_id device) {
  const Query query(api, device);
  DeviceInfo info;
  info.name = query.text(CL_DEVICE_NAME);
  if (info.name.empty()) {
    throw Error(ErrorKind::kIncompatible, "an OpenCL device does not say its name",
                "its driver may be damaged: install it again");
  }
  info.driver = version_words(query.text(CL_DEVICE_VERSION)) + " " + platform_name(api, platform) +
                " " + query.text(CL_DRIVER_VERSION);
  info.memory_bytes = query.number<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  info.largest_buffer_bytes = query.number<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.shared_memory_bytes = query.number<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE);
  info.threads_per_group = query.number<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE);
  std::vector<std::size_t> sizes(query.number<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS));
  if (sizes.size() >= 3 &&
      api.clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes.size() * sizeof(sizes[0]),
                          sizes.data(), nullptr) == CL_SUCCESS) {
    for (std::size_t i = 0; i < 3; ++i) info.group_size[i] = sizes[i];
  }
  info.compute_units =
      static_cast<std::uint32_t>(query.number<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS));
  info.clock_khz =
      static_cast<std::uint32_t>(query.number<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY)) * 1000;
  info.subgroup_size = static_cast<std::uint32_t>(query.number<cl_uint>(kWarpSizeNvidia));
  if (info.subgroup_size == 0) {
    info.subgroup_size = static_cast<std::uint32_t>(query.number<cl_uint>(kWavefrontWidthAmd));
  }
  info.software = (query.number<cl_device_type>(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  return info;
}

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
    return opencl_device_info(opencl_api(), found.platform, found.device);
  }

  std::unique_ptr<Device> open(std::size_t index) override {
    const Found& found = at(index);
    return open_opencl_device(opencl_api(), found.platform, found.device,
                              {kDLOpenCL, static_cast<int>(index)}, info(index));
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
    check_index(index);
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
