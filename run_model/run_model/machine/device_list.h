// The GPUs of this machine, as far as their drivers tell.
#pragma once

#include <string>
#include <vector>

#include "runtime/devices/drivers.h"

namespace run_model {

struct ListedDevice {
  std::string name;  // "opencl:0"
  DeviceInfo info;
  std::string problem;  // why it cannot be used; empty where it can
};

struct ListedDriver {
  std::string name;  // "opencl"
  DeviceDriver::Absence absence;
  std::vector<ListedDevice> devices;
};

using DeviceList = std::vector<ListedDriver>;

DeviceList list_devices();

// A table, then a sentence for each driver that is not there.
std::string device_list_text(const DeviceList& list);
std::string device_list_json(const DeviceList& list);

}  // namespace run_model
