#include "run_model/run_model/machine/device_list.h"

#include <algorithm>

#include <run_model/error.h>
#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

std::string gibibytes(std::uint64_t bytes) {
  if (bytes == 0) return "-";
  return formatted("%.1f", static_cast<double>(bytes) / (1U << 30));
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

std::string description(const DeviceInfo& info) {
  std::string text = info.name;
  if (!info.architecture.empty()) text += " (" + info.architecture + ")";
  return info.software ? text + ", computed by the CPU" : text;
}

Json device_json(const ListedDevice& device) {
  const DeviceInfo& info = device.info;
  Json json = Json::object({{"name", device.name}});
  json.put("problem", device.problem.empty() ? Json() : Json(device.problem));
  if (!device.problem.empty()) return json;
  json.put("device", info.name);
  json.put("driver", info.driver);
  json.put("architecture", info.architecture.empty() ? Json() : Json(info.architecture));
  json.put("software", info.software);
  json.put("memory_bytes", info.memory_bytes);
  json.put("largest_buffer_bytes", info.largest_buffer_bytes);
  json.put("shared_memory_bytes", info.shared_memory_bytes);
  json.put("threads_per_group", info.threads_per_group);
  json.put("group_size",
           std::vector<std::uint64_t>(info.group_size.begin(), info.group_size.end()));
  json.put("grid_size", std::vector<std::uint64_t>(info.grid_size.begin(), info.grid_size.end()));
  json.put("subgroup_size", info.subgroup_size);
  json.put("compute_units", info.compute_units);
  json.put("clock_khz", info.clock_khz);
  return json;
}

}  // namespace

DeviceList list_devices() {
  DeviceList list;
  for (DeviceDriver* driver : device_drivers()) {
    ListedDriver listed{driver->name(), driver->absence(), {}};
    for (std::size_t i = 0; i < driver->count(); ++i) {
      ListedDevice device{driver->name() + ":" + std::to_string(i), {}, {}};
      try {
        device.info = driver->info(i);
      } catch (const Error& error) {
        device.problem = error.what();
      }
      listed.devices.push_back(std::move(device));
    }
    list.push_back(std::move(listed));
  }
  return list;
}

std::string device_list_text(const DeviceList& list) {
  std::size_t name_width = 6;
  std::size_t text_width = 6;
  for (const ListedDriver& driver : list) {
    for (const ListedDevice& device : driver.devices) {
      name_width = std::max(name_width, device.name.size());
      text_width = std::max(text_width, description(device.info).size());
    }
  }
  std::string rows;
  std::string problems;
  for (const ListedDriver& driver : list) {
    for (const ListedDevice& device : driver.devices) {
      if (!device.problem.empty()) {
        problems += device.name + ": " + device.problem + "\n";
        continue;
      }
      rows += padded(device.name, name_width) + "  " +
              padded(description(device.info), text_width) + "  " +
              padded(gibibytes(device.info.memory_bytes), 10) + "  " + device.info.driver + "\n";
    }
    if (driver.absence.reason.empty()) continue;
    problems += driver.name + ": " + driver.absence.reason;
    if (!driver.absence.hint.empty()) problems += "; " + driver.absence.hint;
    problems += "\n";
  }
  if (list.empty()) return "This program was built without drivers of GPUs.\n";
  if (rows.empty()) return "There is no GPU that this program can use.\n" + problems;
  return padded("device", name_width) + "  " + padded("what", text_width) +
         "  memory GiB  driver\n" + rows + problems;
}

std::string device_list_json(const DeviceList& list) {
  Json drivers = Json::array();
  for (const ListedDriver& driver : list) {
    Json devices = Json::array();
    for (const ListedDevice& device : driver.devices) devices.add(device_json(device));
    Json json = Json::object({{"driver", driver.name}});
    json.put("missing", driver.absence.reason.empty() ? Json() : Json(driver.absence.reason));
    json.put("hint", driver.absence.hint.empty() ? Json() : Json(driver.absence.hint));
    json.put("devices", std::move(devices));
    drivers.add(std::move(json));
  }
  Json json = Json::object({{"schema_version", kReportSchema}});
  json.put("drivers", std::move(drivers));
  return json.text() + "\n";
}

}  // namespace run_model
