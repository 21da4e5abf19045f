// The pictures of a folder, or those that standard input names, one after the other.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace run_model {

class PictureList {
 public:
  // `image` is a folder, whose pictures come in the order of their names, or "-". `stop`: what
  // note_stop_signals() gave, or -1; once there is a signal, no path is read any more. Throws
  // Error(kFile), as next() does.
  PictureList(const std::filesystem::path& image, int stop);

  // False at the end.
  bool next(std::filesystem::path& path);

 private:
  // Of standard input; false at its end.
  bool next_line(std::string& line);

  bool from_input_;
  int stop_;
  std::string unread_;
  std::vector<std::filesystem::path> pictures_;
  std::size_t position_ = 0;
};

}  // namespace run_model
