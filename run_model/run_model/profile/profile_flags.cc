#include "run_model/run_model/profile/profile_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "run_model/shared/arguments.h"

DEFINE_bool(profile, false, "run node by node and show where the time goes");
DEFINE_string(profile_csv, "", "write the profile to this file as comma-separated values");
DEFINE_string(profile_trace, "", "write one run to this file in Chrome's trace event format");
DEFINE_string(profile_html, "", "write the profile to this file as a page that draws it");
DEFINE_string(profile_json, "", "write the profile to this file as JSON");
DEFINE_string(profile_sort, "time", "the order of the profile's rows: time or order");
DEFINE_int32(profile_top, 0, "rows of the profile's table; 0 for all");

namespace run_model {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kUsage, message, "run_model --help shows the usage");
}

std::filesystem::path file_flag(const char* name, const std::string& value,
                                std::vector<std::filesystem::path>& seen) {
  if (!flag_is_set(name)) return {};
  std::string spelling = "--" + std::string(name);
  std::replace(spelling.begin(), spelling.end(), '_', '-');
  if (value.empty()) fail(spelling + " is given an empty value");
  const std::filesystem::path path = std::filesystem::path(value).lexically_normal();
  if (std::find(seen.begin(), seen.end(), path) != seen.end()) {
    fail(spelling + " names " + path_in_quotes(value) + ", which another flag writes too");
  }
  seen.push_back(path);
  return value;
}

}  // namespace

ProfileSettings read_profile_settings() {
  ProfileSettings settings;
  std::vector<std::filesystem::path> seen;
  settings.csv = file_flag("profile_csv", FLAGS_profile_csv, seen);
  settings.trace = file_flag("profile_trace", FLAGS_profile_trace, seen);
  settings.html = file_flag("profile_html", FLAGS_profile_html, seen);
  settings.json = file_flag("profile_json", FLAGS_profile_json, seen);
  settings.table = FLAGS_profile;
  settings.wanted = settings.table || !seen.empty();

  if (FLAGS_profile_sort != "time" && FLAGS_profile_sort != "order") {
    fail("--profile-sort is " + in_quotes(FLAGS_profile_sort) + ", expected time or order");
  }
  settings.order = FLAGS_profile_sort == "time" ? ProfileOrder::kTime : ProfileOrder::kRunning;
  if (FLAGS_profile_top < 0) {
    fail("--profile-top is " + std::to_string(FLAGS_profile_top) + ", expected 0 or more");
  }
  settings.top = static_cast<std::size_t>(FLAGS_profile_top);
  for (const char* name : {"profile_sort", "profile_top"}) {
    if (!flag_is_set(name) || settings.table) continue;
    fail(name == std::string("profile_sort") ? "--profile-sort has no meaning without --profile"
                                             : "--profile-top has no meaning without --profile");
  }
  return settings;
}

}  // namespace run_model
