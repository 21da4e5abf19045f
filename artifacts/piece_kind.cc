#include "artifacts/piece_kind.h"

#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "artifacts/formats/deflate.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/text.h"

namespace run_model {
namespace {

using namespace std::string_view_literals;

// As far as a tar archive's magic, "ustar" at offset 257, and what file_kind looks at.
constexpr std::size_t kStartBytes = 512;
constexpr std::size_t kTarMagicOffset = 257;

std::string_view name_of(PieceKind kind) {
  switch (kind) {
    case PieceKind::kLibrary:
      return "a compiled library (.so)";
    case PieceKind::kGraph:
      return "a graph in JSON";
    case PieceKind::kParams:
      break;
  }
  return "a .params file";
}

bool begins_as(std::string_view start, PieceKind kind) {
  switch (kind) {
    case PieceKind::kLibrary:
      return start.starts_with("\x7F"
                               "ELF"sv);
    case PieceKind::kGraph: {
      const std::size_t first = start.find_first_not_of(" \t\r\n");
      return first != start.npos && start[first] == '{';
    }
    case PieceKind::kParams:
      break;
  }
  // 0xF7E58D4F05049CB7, the list magic of TVM's file_utils.h, little-endian.
  return start.starts_with("\xB7\x9C\x04\x05\x4F\x8D\xE5\xF7"sv);
}

}  // namespace

void check_piece_kind(const std::filesystem::path& path, PieceKind wanted, std::string hint) {
  const std::vector<std::byte> start = read_file_start(path, kStartBytes);
  if (begins_as(as_text(start), wanted)) return;
  bool swapped = false;
  for (const PieceKind kind : {PieceKind::kLibrary, PieceKind::kGraph, PieceKind::kParams}) {
    swapped = swapped || begins_as(as_text(start), kind);
  }
  if (hint.empty()) {
    hint = swapped ? "the artifact's files were probably swapped"
                   : "it is damaged or was not copied whole: copy or compile it again";
  }
  throw Error(ErrorKind::kFormat,
              path_in_quotes(path) + " is " + file_kind(start) + ", but " +
                  std::string(name_of(wanted)) + " was expected there",
              hint);
}

bool is_tar_archive(const std::filesystem::path& path) {
  const std::vector<std::byte> start = read_file_start(path, kStartBytes);
  return is_gzip(start) || (start.size() > kTarMagicOffset &&
                            as_text(start).substr(kTarMagicOffset).starts_with("ustar"));
}

}  // namespace run_model
