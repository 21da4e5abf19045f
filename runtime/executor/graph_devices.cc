#include "runtime/executor/graph_devices.h"

#include <algorithm>
#include <set>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/device_functions.h"
#include "runtime/devices/device_name.h"
#include "runtime/loading/model_library.h"

namespace run_model {
namespace {

std::set<DLDeviceType> devices_with_code(const Module& library) {
  std::set<DLDeviceType> types;
  const ModelLibrary* model = as_model_library(library);
  if (model == nullptr) return types;
  for (const auto& code : model->device_codes()) types.insert(code->device);
  return types;
}

std::string type_name(DLDeviceType type) {
  return std::string(device_type_name(type).value_or("another device"));
}

void check_wanted(const std::set<DLDeviceType>& used, const std::vector<DLDevice>& wanted,
                  const Module& library) {
  for (const DLDevice& device : wanted) {
    if (used.contains(device.device_type)) continue;
    const std::string names = list_of(used, " and ", type_name);
    if (device.device_type == kDLCPU && used.empty()) continue;
    throw Error(ErrorKind::kMismatch,
                "library " + path_in_quotes(library.path()) + " was compiled for " +
                    (names.empty() ? "the CPU" : names) + ", not for " +
                    type_name(device.device_type),
                "leave the device out, or take an artifact for it");
  }
}

}  // namespace

GraphDevices open_graph_devices(Graph& graph, const Module& library,
                                const std::vector<DLDevice>& wanted) {
  const std::set<DLDeviceType> with_code = devices_with_code(library);
  if (!graph.says_devices && with_code.size() == 1) {
    for (GraphEntry& entry : graph.entries) entry.device = *with_code.begin();
  }
  std::set<DLDeviceType> used;
  for (const GraphEntry& entry : graph.entries) {
    if (entry.device != kDLCPU) used.insert(entry.device);
  }
  check_wanted(used, wanted, library);
  GraphDevices devices;
  for (const DLDeviceType type : used) {
    if (!with_code.contains(type)) {
      throw Error(ErrorKind::kMismatch,
                  "the graph computes on " + type_name(type) + ", but library " +
                      path_in_quotes(library.path()) + " has no code for it",
                  "check that the library and the graph come from the same compilation");
    }
    DLDevice id{type, 0};
    for (const DLDevice& device : wanted) {
      if (device.device_type == type) id = device;
    }
    devices.push_back(open_device(id));
    as_model_library(library)->device_functions()->prepare(devices.back());
  }
  return devices;
}

}  // namespace run_model
