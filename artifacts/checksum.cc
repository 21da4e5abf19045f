#include "artifacts/checksum.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <run_model/error.h>
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "base/text.h"

namespace run_model {
namespace {

// On the stack, which may be as small as 64 KiB.
constexpr std::size_t kChunk = std::size_t{1} << 14;

}  // namespace

std::uint64_t file_xxh3_64(const std::filesystem::path& path) {
  const auto fail = [&] {
    throw Error(ErrorKind::kFile,
                "cannot read " + path_in_quotes(path) + ": " + std::strerror(errno));
  };
  const OwnedFd file = open_to_read(path);
  if (!file) fail();
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  std::array<std::byte, kChunk> buffer;
  while (true) {
    const std::ptrdiff_t got = read_some(file.get(), buffer);
    if (got < 0) fail();
    if (got == 0) return XXH3_64bits_digest(&state);
    XXH3_64bits_update(&state, buffer.data(), static_cast<std::size_t>(got));
  }
}

void verify_file(const std::filesystem::path& path, const Metadata& metadata,
                 const std::filesystem::path& metadata_path) {
  static constexpr char kHint[] =
      "the file is damaged or of another artifact: copy it again, or give --no-verify to run it "
      "anyway";
  if (metadata.files.empty()) return;
  const auto entry = metadata.files.find(path.filename().string());
  if (entry == metadata.files.end()) {
    throw Error(ErrorKind::kMismatch,
                path_in_quotes(metadata_path) + " lists the artifact's files, but not " +
                    path_in_quotes(path),
                "give --no-verify to run it anyway");
  }
  const MetadataFile& expected = entry->second;
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) {
    throw Error(ErrorKind::kFile, "cannot read " + path_in_quotes(path) + ": " + error.message());
  }
  if (bytes != expected.bytes) {
    throw Error(ErrorKind::kFormat,
                path_in_quotes(path) + " has " + std::to_string(bytes) + " bytes, but " +
                    path_in_quotes(metadata_path) + " lists " + std::to_string(expected.bytes),
                kHint);
  }
  const auto compare = [&](const char* kind, const std::string& found, const std::string& listed) {
    if (found == listed) return;
    throw Error(ErrorKind::kFormat,
                path_in_quotes(path) + " has the " + kind + " " + found + ", but " +
                    path_in_quotes(metadata_path) + " lists " + listed,
                kHint);
  };
  // XXH3 takes a hundredth of the time; either shows damage and mix-ups.
  if (expected.xxh3_64) {
    compare("XXH3 checksum", hex(file_xxh3_64(path)), hex(*expected.xxh3_64));
  } else if (!expected.sha256.empty()) {
    compare("SHA-256", sha256_hex(MappedFile::open(path, "file")->bytes()), expected.sha256);
  }
}

}  // namespace run_model
