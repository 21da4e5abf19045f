#include "rpc/profile_report.h"

#include <nlohmann/json.hpp>

namespace run_model::rpc {
namespace {

using nlohmann::json;

constexpr const char* kDevice = "cpu0";

// The reader knows no escapes of control characters other than line ends and tabs.
json text_metric(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') c = '?';
  }
  return {{"string", std::move(text)}};
}

json duration(double microseconds) { return {{"microseconds", microseconds}}; }
json count(int number) { return {{"count", number}}; }

json call_metrics(const ProfiledCall& call, double total) {
  json metrics = {{"Name", text_metric(call.function)},
                  {"Duration (us)", duration(call.microseconds)},
                  {"Percent", {{"percent", total > 0 ? call.microseconds / total * 100 : 0.0}}},
                  {"Device", text_metric(kDevice)},
                  {"Count", count(1)},
                  {"Argument Shapes", text_metric(call.shapes)}};
  for (const auto& [name, value] : call.labels) {
    metrics[name == "hash" ? "Hash" : text_metric(name)["string"].get<std::string>()] =
        text_metric(value);
  }
  return metrics;
}

}  // namespace

std::string to_json(const ProfileReport& report) {
  json calls = json::array();
  for (const ProfiledCall& call : report.calls) {
    calls.push_back(call_metrics(call, report.total_microseconds));
  }
  const json document = {
      {"calls", std::move(calls)},
      {"device_metrics",
       {{kDevice,
         {{"Name", text_metric("Total")},
          {"Device", text_metric(kDevice)},
          {"Count", count(1)},
          {"Duration (us)", duration(report.total_microseconds)}}}}},
      {"configuration",
       {{"Executor", text_metric("Graph")}, {"Number of threads", count(report.threads)}}}};
  return document.dump();
}

}  // namespace run_model::rpc
