#include "runtime/devices/code/code_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/write_file.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// An entry is this, the key, SHA-256 of the bytes, and the bytes.
constexpr std::string_view kMark = "run_model kernels 1\n";
constexpr std::size_t kKeyBytes = 64;
constexpr std::size_t kSumBytes = 32;
constexpr std::size_t kHeadBytes = kMark.size() + kKeyBytes + kSumBytes;
constexpr std::string_view kSuffix = ".kernels";
// What a process that ended meanwhile has left of an entry (write_file.cc).
constexpr std::string_view kTemporary = ".kernels.tmp";
constexpr auto kTemporaryAge = std::chrono::hours(1);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Owned by the user, and writable to nobody else.
bool is_private(const fs::path& folder) {
  struct stat info{};
  return ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool make_private(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  ::mkdir(folder.c_str(), S_IRWXU);
  return is_private(folder);
}

fs::path folder_of_user() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string chosen = variable("RUN_MODEL_KERNEL_CACHE");
  if (chosen == "off") return {};
  if (!chosen.empty()) return {std::move(chosen)};
  // Relative paths are to be ignored, says the XDG base directory specification.
  const fs::path caches = variable("XDG_CACHE_HOME");
  if (caches.is_absolute()) return caches / "run_model" / "kernels";
  const fs::path home = variable("HOME");
  if (home.is_absolute()) return home / ".cache" / "run_model" / "kernels";
  return {};
}

}  // namespace

CodeCache::CodeCache(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

std::unique_ptr<const CodeCache> CodeCache::open_for_user() {
  try {
    const fs::path folder = folder_of_user();
    if (!folder.empty() && make_private(folder)) return std::make_unique<const CodeCache>(folder);
  } catch (const std::exception&) {
    // As where there is no folder.
  }
  return nullptr;
}

const CodeCache* CodeCache::of_user() {
  static const std::unique_ptr<const CodeCache> cache = open_for_user();
  return cache.get();
}

std::string CodeCache::key(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) {
    all += std::to_string(part.size());
    all += ':';
    all += part;
  }
  return sha256_hex(bytes_of(all));
}

fs::path CodeCache::file_of(const std::string& key) const {
  return folder_ / (key + std::string(kSuffix));
}

std::optional<std::vector<std::byte>> CodeCache::find(const std::string& key) const noexcept try {
  const fs::path path = file_of(key);
  const OwnedFd file = open_to_read(path, O_NOFOLLOW | O_NONBLOCK);
  if (!file) return std::nullopt;
  std::optional<std::vector<std::byte>> entry =
      read_to_end(file.get(), static_cast<std::size_t>(std::min<std::uint64_t>(
                                  most_bytes_ + kHeadBytes, kMaxArrayFileBytes)));
  const auto is_whole = [&] {
    if (!entry || entry->size() < kHeadBytes) return false;
    const std::span<const std::byte> bytes(*entry);
    const auto sum = sha256(bytes.subspan(kHeadBytes));
    return as_text(bytes.first(kMark.size())) == kMark &&
           as_text(bytes.subspan(kMark.size(), kKeyBytes)) == key &&
           std::ranges::equal(bytes.subspan(kMark.size() + kKeyBytes, kSumBytes), sum);
  };
  if (!is_whole()) {
    ::unlink(path.c_str());
    return std::nullopt;
  }
  // The time of the last use.
  ::futimens(file.get(), nullptr);
  entry->erase(entry->begin(), entry->begin() + kHeadBytes);
  return entry;
} catch (const std::exception&) {
  return std::nullopt;
}

void CodeCache::keep(const std::string& key, std::span<const std::byte> bytes) const noexcept try {
  // One entry must not drive out all others.
  if (bytes.size() > most_bytes_ / 2 || key.size() != kKeyBytes) return;
  const auto sum = sha256(bytes);
  write_file(file_of(key), {bytes_of(kMark), bytes_of(key), sum, bytes});
  make_room();
} catch (const std::exception&) {
  // A full or read-only disk: it is compiled again next time.
}

void CodeCache::make_room() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    const std::string name = file.path().filename().string();
    const fs::file_time_type used = file.last_write_time(error);
    if (error || file.is_symlink(error) || !file.is_regular_file(error)) continue;
    if (name.find(kTemporary) != std::string::npos && now - used > kTemporaryAge) {
      fs::remove(file.path(), error);
    } else if (name.ends_with(kSuffix)) {
      const std::uint64_t bytes = file.file_size(error);
      if (error) continue;
      total += bytes;
      entries.push_back({used, bytes, file.path()});
    }
  }
  if (total <= most_bytes_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    // Down to three quarters, so that not every new entry has to look for room.
    if (total <= most_bytes_ / 4 * 3) break;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace run_model
