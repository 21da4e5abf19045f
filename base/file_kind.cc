#include "base/file_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace run_model {
namespace {

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view kind;
};

using namespace std::string_view_literals;

// The signatures are those of the formats' own specifications, as the file(1) command has them too.
constexpr std::array kMagics = {
    Magic{0,
          "\x7f"
          "ELF"sv,
          "an ELF file (a compiled library or program)"},
    Magic{0, "\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7"sv, "TVM parameters (.params)"},
    Magic{0, "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd"sv, "a single TVM tensor"},
    Magic{257, "ustar"sv, "a tar archive"},
    Magic{0, "\x1f\x8b"sv, "a gzip archive"},
    Magic{0, "BZh"sv, "a bzip2 archive"},
    Magic{0,
          "\xfd"
          "7zXZ\0"sv,
          "an xz archive"},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "a zstd archive"},
    Magic{0, "PK\x03\x04"sv, "a zip archive (.zip, .npz, .pt)"},
    Magic{0, "!<arch>\n"sv, "a static library (.a)"},
    Magic{0, "\xcf\xfa\xed\xfe"sv, "a macOS library (Mach-O)"},
    Magic{0, "\xce\xfa\xed\xfe"sv, "a macOS library (Mach-O)"},
    Magic{0, "\xca\xfe\xba\xbe"sv, "a macOS universal library (Mach-O)"},
    Magic{0, "MZ"sv, "a Windows library (PE)"},
    Magic{0, "\0asm"sv, "a WebAssembly module"},
    Magic{0, "\x93NUMPY"sv, "a NumPy array (.npy)"},
    Magic{0, "\x89PNG"sv, "a PNG picture"},
    Magic{0, "\xff\xd8\xff"sv, "a JPEG picture"},
    Magic{0, "BC\xc0\xde"sv, "LLVM bitcode"},
    Magic{0, "version https://git-lfs"sv, "a Git LFS pointer, not the file itself"},
};

// How much of the beginning is looked at to tell text from binary data.
constexpr std::size_t kLookedAt = 512;

bool is_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t';
  });
}

}  // namespace

std::string file_kind(std::span<const std::byte> bytes) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kLookedAt));
  if (head.empty()) {
    return "empty";
  }
  for (const Magic& magic : kMagics) {
    if (head.size() > magic.offset && head.substr(magic.offset).starts_with(magic.bytes)) {
      return std::string(magic.kind);
    }
  }
  if (is_text(head)) {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && (head[first] == '{' || head[first] == '[')) {
      return "JSON text";
    }
    return "text";
  }
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; })) {
    return "nothing but zero bytes";
  }
  return "of no kind that run_model knows";
}

}  // namespace run_model
