// A profile as text for people and for programs.
#pragma once

#include <string>

#include "run_model/run_model/profile/profile.h"
#include "run_model/run_model/setting_groups.h"
#include "run_model/shared/json.h"

namespace run_model {

// Table of the nodes, sum over operator families and the memory, in lines of at most `width` bytes
// (at least kMinProfileWidth); long names are cut in the middle.
inline constexpr std::size_t kMinProfileWidth = 80;
std::string profile_text(const Profile& profile, const ProfileSettings& settings,
                         std::size_t width);

// Columns of the terminal on standard output, 100 where that is none.
std::size_t report_width();

// Units are in the keys: time_ms, bytes, gflop_per_s.
inline constexpr int kProfileSchema = 1;
Json profile_json(const Profile& profile);

// RFC 4180, in running order; the first line names the columns with their units.
std::string profile_csv(const Profile& profile);

// One run, the fastest, in Chrome's trace event format ("JSON object format"), as Perfetto and
// chrome://tracing read it. Time stamps are those that were measured, in microseconds.
std::string profile_trace(const Profile& profile);

// A page that needs no network.
std::string profile_html(const Profile& profile);

// Writes the files that the settings name, each whole or not at all; files of the same name are
// replaced, as --outputs does. Throws Error(kFile).
void write_profile_files(const Profile& profile, const ProfileSettings& settings);

}  // namespace run_model
