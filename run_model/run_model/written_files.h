// The files that the command line has written.
#pragma once

#include <filesystem>

#include <run_model/package.h>
#include "run_model/run_model/settings.h"

namespace run_model {

// Refuses what would only be seen when the work is done: two flags that write the same file, a file
// that is read and written, a folder that is not there. Throws Error(kUsage) and Error(kFile).
void check_written_files(const Settings& settings);

// The same for a picture whose path was not known then.
void refuse_to_replace(const std::filesystem::path& read, const std::filesystem::path& written);

// The same for an artifact, whose files are known once it is found.
void refuse_to_replace(const Package& read, const Settings& settings);

// By the endings of their names: pictures, among them those that cannot be read (TIFF, HEIF …).
bool is_picture_name(const std::filesystem::path& path);

}  // namespace run_model
