#include "artifacts/zip_reader.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <run_model/error.h>
#include "artifacts/inflate.h"
#include "artifacts/zip_format.h"
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::uint64_t kMaxEntries = 1 << 16;
constexpr std::uint64_t kMaxComment = 0xFFFF;

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  const Directory directory = find_directory();
  std::uint64_t offset = directory.offset;
  const std::uint64_t end = directory.offset + directory.bytes;
  for (std::uint64_t i = 0; i < directory.entries; ++i) offset = read_entry(offset, end);
  if (offset != end) fail("its directory has more bytes than members");
  check_totals();
}

void ZipReader::fail(const std::string& why) const {
  throw Error(ErrorKind::kFormat, name_ + " is not a usable zip file: " + why);
}

std::uint64_t ZipReader::little_endian(std::uint64_t offset, int bytes) const {
  if (offset > bytes_.size() || bytes_.size() - offset < static_cast<std::uint64_t>(bytes)) {
    fail("it is truncated");
  }
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes_[offset + i]) << (8 * i);
  }
  return value;
}

// The record at the end of the file, before a comment of up to 64 KiB.
std::uint64_t ZipReader::find_end_record() const {
  if (bytes_.empty()) fail("it is empty");
  if (bytes_.size() >= 4 && little_endian(0, 4) != zip::kLocalHeader &&
      little_endian(0, 4) != zip::kEndRecord) {
    fail("it does not begin with a zip signature");
  }
  if (bytes_.size() >= zip::kEndRecordBytes) {
    const std::uint64_t last = bytes_.size() - zip::kEndRecordBytes;
    const std::uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (std::uint64_t offset = last + 1; offset-- > first;) {
      if (little_endian(offset, 4) != zip::kEndRecord) continue;
      if (offset + zip::kEndRecordBytes + little_endian(offset + 20, 2) == bytes_.size()) {
        return offset;
      }
    }
  }
  fail("its directory is missing, so it is truncated or damaged");
}

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t end = find_end_record();
  if (little_endian(end + 4, 2) != 0) fail("it is one part of several");
  Directory directory{little_endian(end + 10, 2), little_endian(end + 16, 4),
                      little_endian(end + 12, 4)};
  std::uint64_t directory_end = end;
  const bool locator = end >= zip::kEndLocator64Bytes &&
                       little_endian(end - zip::kEndLocator64Bytes, 4) == zip::kEndLocator64;
  if (locator) {
    const std::uint64_t end64 = little_endian(end - zip::kEndLocator64Bytes + 8, 8);
    if (end64 > end || end - end64 < zip::kEndRecord64Bytes ||
        little_endian(end64, 4) != zip::kEndRecord64) {
      fail("its zip64 directory is damaged");
    }
    directory = {little_endian(end64 + 32, 8), little_endian(end64 + 48, 8),
                 little_endian(end64 + 40, 8)};
    directory_end = end64;
  }
  if (directory.offset > directory_end || directory.bytes > directory_end - directory.offset) {
    fail("its directory lies outside the file");
  }
  if (directory.bytes != directory_end - directory.offset) {
    fail("there are bytes between its directory and its end");
  }
  if (directory.entries > kMaxEntries ||
      directory.entries > directory.bytes / zip::kCentralHeaderBytes) {
    fail("its directory claims " + std::to_string(directory.entries) + " members in " +
         std::to_string(directory.bytes) + " bytes");
  }
  return directory;
}

// Returns the offset of the next entry.
std::uint64_t ZipReader::read_entry(std::uint64_t offset, std::uint64_t end) {
  if (end - offset < zip::kCentralHeaderBytes || little_endian(offset, 4) != zip::kCentralHeader) {
    fail("its directory is damaged");
  }
  const std::uint64_t name_bytes = little_endian(offset + 28, 2);
  const std::uint64_t extra_bytes = little_endian(offset + 30, 2);
  const std::uint64_t name_offset = offset + zip::kCentralHeaderBytes;
  const std::uint64_t extra_offset = name_offset + name_bytes;
  const std::uint64_t next = extra_offset + extra_bytes + little_endian(offset + 32, 2);
  if (next > end) fail("its directory is damaged");

  ZipEntry entry;
  entry.name = as_text(bytes_.subspan(name_offset, name_bytes));
  entry.method = static_cast<std::uint16_t>(little_endian(offset + 10, 2));
  entry.crc32 = static_cast<std::uint32_t>(little_endian(offset + 16, 4));
  entry.compressed_bytes = little_endian(offset + 20, 4);
  entry.bytes = little_endian(offset + 24, 4);
  entry.header_offset = little_endian(offset + 42, 4);
  read_zip64_extra(entry, extra_offset, extra_offset + extra_bytes);
  if (little_endian(offset + 8, 2) & zip::kFlagEncrypted) {
    fail("its member " + in_quotes(entry.name) + " is encrypted");
  }
  if (entry.method != zip::kMethodStored && entry.method != zip::kMethodDeflated) {
    fail("its member " + in_quotes(entry.name) + " is packed by method " +
         std::to_string(entry.method) + ", and only stored and deflated ones can be read");
  }
  entries_.push_back(std::move(entry));
  return next;
}

void ZipReader::read_zip64_extra(ZipEntry& entry, std::uint64_t offset, std::uint64_t end) const {
  while (offset < end && end - offset >= 4) {
    const std::uint64_t id = little_endian(offset, 2);
    const std::uint64_t bytes = little_endian(offset + 2, 2);
    offset += 4;
    if (bytes > end - offset) fail("an extra field in its directory is damaged");
    if (id == zip::kExtraZip64) {
      // Only the values that do not fit in the record are there, in this order.
      std::uint64_t field = offset;
      for (std::uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset}) {
        if (*value != zip::kIn64) continue;
        if (offset + bytes - field < 8) fail("a zip64 field in its directory is damaged");
        *value = little_endian(field, 8);
        field += 8;
      }
    }
    offset += bytes;
  }
}

// Members that overlap could make a small file unpack to a huge one.
void ZipReader::check_totals() const {
  std::uint64_t total = 0;
  std::set<std::string_view> names;
  for (const ZipEntry& entry : entries_) {
    if (!names.insert(entry.name).second) {
      fail("it holds the member " + in_quotes(entry.name) + " twice");
    }
    if (entry.compressed_bytes > bytes_.size() - total) {
      fail("its members claim more bytes than the file has");
    }
    total += entry.compressed_bytes;
  }
}

std::span<const std::byte> ZipReader::packed(const ZipEntry& entry) const {
  const std::uint64_t header = entry.header_offset;
  if (header > bytes_.size() || bytes_.size() - header < zip::kLocalHeaderBytes ||
      little_endian(header, 4) != zip::kLocalHeader) {
    fail("the header of its member " + in_quotes(entry.name) + " is damaged");
  }
  const std::uint64_t name_bytes = little_endian(header + 26, 2);
  const std::uint64_t start =
      header + zip::kLocalHeaderBytes + name_bytes + little_endian(header + 28, 2);
  if (start > bytes_.size() || entry.compressed_bytes > bytes_.size() - start) {
    fail("its member " + in_quotes(entry.name) + " reaches beyond its end");
  }
  // No checksum covers the name, but it is there twice.
  if (as_text(bytes_.subspan(header + zip::kLocalHeaderBytes, name_bytes)) != entry.name) {
    fail("its member " + in_quotes(entry.name) + " has another name in its directory");
  }
  return bytes_.subspan(start, entry.compressed_bytes);
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  const std::span<const std::byte> source = packed(entry);
  std::vector<std::byte> member;
  if (entry.method == zip::kMethodStored) {
    if (entry.bytes != source.size()) {
      fail("the sizes of its member " + in_quotes(entry.name) + " contradict each other");
    }
    member.assign(source.begin(), source.end());
  } else {
    member = inflate_exactly(source, entry.bytes, name_ + ", member " + in_quotes(entry.name));
  }
  if (crc32_of(member) != entry.crc32) {
    fail("the checksum of its member " + in_quotes(entry.name) + " is wrong, so it is damaged");
  }
  return member;
}

}  // namespace run_model
