// A file as memory, and memory as a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace run_model {

// Shared by everything that points into it. A file that another process shortens while it is mapped
// ends this process (SIGBUS), as for every mapped file: replace files by renaming, not in place.
class MappedFile {
 public:
  // `what` says in errors what the file was to be: "library", "parameters file". Throws
  // Error(kFile) when it is missing, unreadable, a directory or a device, Error(kFormat) when it is
  // empty.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                std::string_view what = "file");

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Gives the whole pages within [offset, offset + length) back to the system; a later read of them
  // fetches them from the file again. For bytes that have been copied and are not needed here.
  void release(std::size_t offset, std::size_t length) const;

 private:
  explicit MappedFile(std::filesystem::path path);

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

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
