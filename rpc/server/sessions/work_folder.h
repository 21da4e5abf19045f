// The folder that a server keeps its sessions' folders in.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.h"

namespace run_model::rpc {

// <place>/run_model_rpc.XXXXXX, for its user only (0700), locked for as long as the server lives.
class WorkFolder {
 public:
  // `place`: empty for TMPDIR, or /tmp. Removes what servers have left there that did not get to do
  // so themselves: folders of that name whose lock nobody holds. Throws Error(kFile) when none can
  // be made.
  explicit WorkFolder(std::filesystem::path place);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Where the folder of a session is, or was.
  std::filesystem::path session_folder(std::uint64_t session) const;

  // Makes it, empty. Throws Error(kFile).
  std::filesystem::path make_session_folder(std::uint64_t session) const;

  // All of it, whatever the session has made of it; links are not followed. False when something is
  // left.
  static bool remove(const std::filesystem::path& folder);

 private:
  std::filesystem::path path_;
  OwnedFd lock_;
};

}  // namespace run_model::rpc
