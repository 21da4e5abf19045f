#include "base/installed_library.h"

#include <dlfcn.h>

namespace run_model {

InstalledLibrary::InstalledLibrary(const char* file, const char* oldest)
    : file_(file), oldest_(oldest), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const said = ::dlerror();
  const std::string reason = said == nullptr ? "" : said;
  problem_ = reason.find("No such file") != std::string::npos
                 ? "there is no " + file_
                 : file_ + " cannot be opened (" + reason + ")";
}

void* InstalledLibrary::address(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

void InstalledLibrary::note_missing(const char* name) {
  if (problem_.empty()) problem_ = file_ + " has no " + name + ", so it is older than " + oldest_;
}

}  // namespace run_model
