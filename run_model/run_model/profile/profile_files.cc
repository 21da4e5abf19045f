#include <span>

#include "base/write_file.h"
#include "run_model/run_model/profile/profile_formats.h"

namespace run_model {
namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
  write_file(path, {std::as_bytes(std::span(text))});
}

}  // namespace

void write_profile_files(const Profile& profile, const ProfileSettings& settings) {
  if (!settings.csv.empty()) write_text(settings.csv, profile_csv(profile));
  if (!settings.trace.empty()) write_text(settings.trace, profile_trace(profile));
  if (!settings.html.empty()) write_text(settings.html, profile_html(profile));
  if (!settings.json.empty()) write_text(settings.json, json_text(profile_json(profile)));
}

}  // namespace run_model
