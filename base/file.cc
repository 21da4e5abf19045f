#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

// What the file system says, 0 for pipes and devices.
std::uint64_t regular_size(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return static_cast<std::uint64_t>(info.st_size);
}

OwnedFd open_or_throw(const std::filesystem::path& path, std::string_view what) {
  OwnedFd file = open_to_read(path);
  if (!file) {
    throw Error(ErrorKind::kFile, "cannot read " + path_in_quotes(path) + " as " +
                                      std::string(what) + ": " + std::strerror(errno));
  }
  return file;
}

std::vector<std::byte> read_or_throw(const OwnedFd& file, const std::filesystem::path& path,
                                     std::size_t limit) {
  std::optional<std::vector<std::byte>> bytes = read_to_end(file.get(), limit);
  if (!bytes) {
    throw Error(ErrorKind::kFile,
                "cannot read " + path_in_quotes(path) + ": " + std::strerror(errno));
  }
  return std::move(*bytes);
}

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

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

OwnedFd open_to_read(const std::filesystem::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  } while (fd < 0 && errno == EINTR);
  return OwnedFd(fd);
}

std::ptrdiff_t read_some(int fd, std::span<std::byte> buffer) {
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  return got;
}

std::optional<std::vector<std::byte>> read_to_end(int fd, std::size_t limit) {
  // One byte more than expected, so that a regular file is read to its end without growing.
  std::vector<std::byte> bytes(static_cast<std::size_t>(
      std::min<std::uint64_t>(limit, std::max<std::uint64_t>(regular_size(fd) + 1, kChunk))));
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      if (used == limit) break;
      bytes.resize(std::min(limit, used * 2));
    }
    const std::ptrdiff_t got = read_some(fd, std::span(bytes).subspan(used));
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what) {
  const OwnedFd file = open_or_throw(path, what);
  const auto too_large = [&] {
    return Error(ErrorKind::kFormat, path_in_quotes(path) + " is larger than " +
                                         std::to_string(limit) + " bytes, which is too large for " +
                                         std::string(what));
  };
  if (regular_size(file.get()) > limit) throw too_large();
  std::vector<std::byte> bytes = read_or_throw(file, path, limit + 1);
  if (bytes.size() > limit) throw too_large();
  return bytes;
}

std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit) {
  return read_or_throw(open_or_throw(path, "a file"), path, limit);
}

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
