#include "run_model/run_model/written_files.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "base/write_file.h"
#include "run_model/run_model/setting_groups.h"
#include "run_model/shared/arguments.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

struct Written {
  const char* flag;
  fs::path path;
};

// Of many pictures, files of the same names go into each folder.
bool mixes(const Settings& settings, const Written& one, const Written& other) {
  if (settings.action != Action::kRunPictures || settings.map_png) return true;
  const std::string_view maps = "save_map";
  return one.flag != maps && other.flag != maps;
}

bool same_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return one.lexically_normal() == other.lexically_normal() || fs::equivalent(one, other, error);
}

// Folders of many pictures are made when they are needed, and written to without delay.
std::vector<Written> written_files(const Settings& settings) {
  std::vector<Written> written{{"dump_input", settings.dump_input},
                               {"outputs", settings.outputs},
                               {"save_inputs", settings.save_inputs},
                               {"times", settings.measure.times},
                               {"profile_csv", settings.profile.csv},
                               {"profile_trace", settings.profile.trace},
                               {"profile_html", settings.profile.html},
                               {"profile_json", settings.profile.json},
                               {"coco", settings.coco},
                               {"draw", settings.draw},
                               {"save_mask", settings.save_mask},
                               {"save_map", settings.save_map}};
  std::erase_if(written, [](const Written& file) {
    return file.path.empty() || exists_as_special_file(file.path);  // nothing of it can be lost
  });
  return written;
}

bool is_folder_of_many(const Settings& settings, const char* flag) {
  const std::string_view name = flag;
  return settings.action == Action::kRunPictures &&
         (name == "draw" || name == "save_mask" || name == "save_map");
}

bool has_ending(const fs::path& path, std::initializer_list<std::string_view> endings) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

}  // namespace

void refuse_to_replace(const fs::path& read, const fs::path& written) {
  if (!same_file(read, written)) return;
  throw Error(ErrorKind::kUsage,
              path_in_quotes(written) + " is read, and would be written in its own place",
              "name another file or folder for what is written");
}

void refuse_to_replace(const Package& read, const Settings& settings) {
  for (const Written& written : written_files(settings)) {
    for (const fs::path* file : {&read.files.library, &read.files.graph, &read.files.params,
                                 &read.arrays, &read.metadata_path}) {
      refuse_to_replace(*file, written.path);
    }
  }
}

void check_written_files(const Settings& settings) {
  const std::vector<Written> written = written_files(settings);
  for (auto file = written.begin(); file != written.end(); ++file) {
    const std::string spelling = flag_spelling(file->flag);
    for (auto before = written.begin(); before != file; ++before) {
      if (same_file(file->path, before->path) && mixes(settings, *file, *before)) {
        refuse(spelling + " names " + path_in_quotes(file->path) + ", which " +
               flag_spelling(before->flag) + " writes too");
      }
    }
    for (const fs::path& read :
         {settings.image, settings.compare_with, settings.labels, settings.task,
          settings.given_outputs, settings.inputs, settings.calls, settings.artifacts}) {
      refuse_to_replace(read, file->path);
    }
    if (is_folder_of_many(settings, file->flag)) continue;
    const std::string_view name = file->flag;
    if ((name == "draw" || name == "save_mask") && is_picture_name(file->path) &&
        !has_ending(file->path, {".png"})) {
      refuse(spelling + " is " + in_quotes(file->path.string()) +
             ", expected a name that ends in .png, which is what is written");
    }
    check_can_write(file->path);
  }
}

bool is_picture_name(const fs::path& path) {
  return has_ending(path,
                    {".png",  ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif",  ".pnm",
                     ".ppm",  ".pgm",  ".pbm", ".psd",  ".tga", ".webp", ".tif", ".tiff", ".heic",
                     ".heif", ".avif", ".jp2", ".j2k",  ".jxl", ".pam",  ".hdr", ".exr",  ".qoi"});
}

}  // namespace run_model
