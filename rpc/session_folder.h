// The folder that the files of one session lie in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace run_model::rpc {

// Files have plain names: no folders, no "..", no hidden files; links are never followed. All
// functions throw Error(kUsage) for a name that is none, Error(kFile) when the system refuses.
class SessionFolder {
 public:
  // `path` is an existing folder, which the caller removes; `most_bytes` is what all files together
  // may hold.
  SessionFolder(std::filesystem::path path, std::uint64_t most_bytes);

  const std::filesystem::path& path() const { return path_; }

  // Writes a file piece by piece. It appears under its name when all is there and replaces an older
  // one; until then, and when `next` throws, there is nothing of it. `next` fills the buffer that
  // it is given from its start and returns how many bytes it wrote, at least 1.
  void write(const std::string& name, std::uint64_t bytes,
             const std::function<std::size_t(std::span<std::byte>)>& next);
  void write(const std::string& name, std::span<const std::byte> content);

  // False where there is none of that name.
  bool remove(const std::string& name);
  std::vector<std::string> names() const;  // sorted

  // Where the file lies. Throws Error(kFile) unless it is there and a regular file.
  std::filesystem::path file(const std::string& name) const;

  // Where a file of that name would lie, whether there or not: for what writes files itself.
  std::filesystem::path place(const std::string& name) const;

 private:
  std::uint64_t bytes_in_use() const;

  std::filesystem::path path_;
  std::uint64_t most_bytes_;
  OwnedFd directory_;
};

}  // namespace run_model::rpc
