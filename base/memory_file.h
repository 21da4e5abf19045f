// A file that exists in memory only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"

namespace run_model {

// Other code opens it by its path, as dlopen has to. It vanishes with the last pointer to it and
// the last mapping of it, however the process ends.
class MemoryFile {
 public:
  // `name` is what path_in_quotes() shows in its place; Linux keeps 249 bytes of it, so a longer
  // one loses its beginning. Throws Error(kFile) when the system has no memory for it.
  static std::shared_ptr<const MemoryFile> create(const std::string& name,
                                                  std::span<const std::byte> content);

  // Valid in this process as long as this object lives.
  std::filesystem::path path() const;

 private:
  explicit MemoryFile(OwnedFd fd) : fd_(std::move(fd)) {}

  OwnedFd fd_;
};

}  // namespace run_model
