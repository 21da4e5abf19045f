#include "run_model/run_model/installed_labels.h"

#include <system_error>

namespace run_model {

namespace fs = std::filesystem;

fs::path find_labels(const fs::path& given) {
  std::error_code error;
  if (given.empty() || given.has_parent_path() || fs::exists(given, error)) return given;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return given;
  const fs::path installed =
      program.parent_path().parent_path() / "share" / "run_model" / "labels" / given;
  return fs::exists(installed, error) ? installed : given;
}

}  // namespace run_model
