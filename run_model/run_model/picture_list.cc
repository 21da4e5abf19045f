#include "run_model/run_model/picture_list.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/stop_signals.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// No path is longer.
constexpr std::size_t kLongestLine = 1 << 16;

// The pictures of a folder in the order of their names, without hidden files: of those that a Mac
// packs, each picture has one beside it that is none (._cat.jpg).
std::vector<fs::path> pictures_of(const fs::path& folder) {
  std::vector<fs::path> pictures;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    const bool hidden = path.filename().native().starts_with('.');
    if (!hidden && is_picture_name(path) && !is_folder(path)) pictures.push_back(path);
  }
  if (error) {
    throw Error(ErrorKind::kFile,
                "cannot read the folder " + path_in_quotes(folder) + ": " + error.message());
  }
  if (pictures.empty()) {
    throw Error(ErrorKind::kFile, "the folder " + path_in_quotes(folder) + " holds no pictures",
                "their names have to end in .png, .jpg, .webp or as another format's do");
  }
  std::sort(pictures.begin(), pictures.end());
  return pictures;
}

}  // namespace

PictureList::PictureList(const fs::path& image, int stop) : from_input_(image == "-"), stop_(stop) {
  if (!from_input_) pictures_ = pictures_of(image);
}

bool PictureList::next(fs::path& path) {
  if (!from_input_) {
    if (position_ == pictures_.size()) return false;
    path = pictures_[position_++];
    return true;
  }
  std::string line;
  while (next_line(line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    path = line;
    return true;
  }
  return false;
}

bool PictureList::next_line(std::string& line) {
  static constexpr std::string_view kEnds("\n\0", 2);  // find -print0 writes the other one
  std::size_t end = 0;
  while ((end = unread_.find_first_of(kEnds)) == unread_.npos) {
    if (unread_.size() > kLongestLine) {
      throw Error(
          ErrorKind::kFile,
          "a line of standard input has more than " + std::to_string(kLongestLine) + " bytes",
          "give the path of one picture a line");
    }
    if (!wait_for_standard_input(stop_)) return false;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw Error(ErrorKind::kFile,
                  std::string("cannot read standard input: ") + std::strerror(errno));
    }
    if (count == 0) {
      line = std::exchange(unread_, {});
      return !line.empty();
    }
    unread_.append(bytes.data(), static_cast<std::size_t>(count));
  }
  line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return true;
}

}  // namespace run_model
