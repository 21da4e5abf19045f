#include "run_model/run_model/measured_report.h"

#include <array>
#include <cstdio>
#include <utility>

#include "run_model/run_model/machine/machine_reports.h"
#include "run_model/run_model/measure/timing_report.h"
#include "run_model/run_model/profile/profile_formats.h"
#include "run_model/shared/json_put.h"

namespace run_model {
namespace {

std::string milliseconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f ms", value);
  return text.data();
}

std::string time_line(const RunReport& report) {
  const Timing& timing = report.timing;
  std::string text = "Time: load " + milliseconds(timing.load);
  if (timing.preprocess > 0) {
    text += ", preprocess " + milliseconds(timing.preprocess);
    if (report.measurement) text += " (decode " + milliseconds(timing.decode) + ")";
  }
  return text + (report.measurement ? ", first run " : ", run ") + milliseconds(timing.run) + " (" +
         std::to_string(report.threads) + (report.threads == 1 ? " thread)\n" : " threads)\n");
}

}  // namespace

std::string run_report_text(const RunReport& report) {
  std::string text = time_line(report);
  if (report.measurement) text += timing_text(*report.measurement);
  if (report.profile && report.profile_settings.table) {
    text += profile_text(*report.profile, report.profile_settings, report_width());
  }
  if (report.memory.enabled()) text += memory_text(report.memory);
  if (report.sweep) text += thread_sweep_text(*report.sweep);
  if (report.measurement || report.profile || report.sweep) {
    text += thread_plan_text(report.thread_plan);
    if (report.machine) text += machine_text(*report.machine);
  }
  return text;
}

Json run_report_start(const RunReport& report) {
  Json json = Json::object();
  put(json, "schema_version", kReportSchema);
  put(json, "model", report.package.model);
  put_json(json, "artifact", package_json(report.package));
  put(json, "threads", report.threads);
  put_json(json, "thread_plan", thread_plan_json(report.thread_plan));
  put_json(json, "machine", report.machine ? machine_json(*report.machine) : Json());
  if (report.measurement) {
    Json fingerprints = Json::object();
    put(fingerprints, "library", report.library_fingerprint);
    put(fingerprints, "inputs", report.inputs_fingerprint);
    put_json(json, "fingerprints", std::move(fingerprints));
  }
  return json;
}

void add_measurements(Json& json, const RunReport& report) {
  const Timing& timing = report.timing;
  Json times = Json::object();
  put(times, "load", timing.load);
  if (timing.preprocess > 0) {
    put(times, "decode", timing.decode);
    put(times, "preprocess", timing.preprocess);
  }
  put(times, "run", timing.run);
  if (report.measurement) put_json(times, "repeated", timing_json(*report.measurement));
  put_json(json, "timing", std::move(times));
  if (report.memory.enabled()) put_json(json, "memory", memory_json(report.memory));
  if (report.sweep) put_json(json, "sweep", thread_sweep_json(*report.sweep));
  if (report.profile && report.profile_settings.table) {
    put_json(json, "profile", profile_json(*report.profile));
  }
}

}  // namespace run_model
