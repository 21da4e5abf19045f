// The flags that ask where the time goes.
#pragma once

#include <gflags/gflags.h>

#include <cstddef>
#include <filesystem>
#include <string_view>

DECLARE_bool(profile);
DECLARE_string(profile_csv);
DECLARE_string(profile_trace);
DECLARE_string(profile_html);
DECLARE_string(profile_json);
DECLARE_string(profile_sort);
DECLARE_int32(profile_top);

namespace run_model {

enum class ProfileOrder { kTime, kRunning };

struct ProfileSettings {
  bool wanted = false;  // --profile, or any of the files
  bool table = false;   // --profile: part of the report; the files alone leave the report as it is
  ProfileOrder order = ProfileOrder::kTime;
  std::size_t top = 0;  // rows of the table; 0: all
  // Empty: not written.
  std::filesystem::path csv;
  std::filesystem::path trace;
  std::filesystem::path html;
  std::filesystem::path json;
};

// From gflags' flags. Throws Error(kUsage) for values out of range, one file given twice, and for
// --profile-sort or --profile-top without a table to sort.
ProfileSettings read_profile_settings();

}  // namespace run_model
