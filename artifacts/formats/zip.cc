#include "artifacts/formats/zip.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <run_model/error.h>
#include "artifacts/formats/deflate.h"
#include "base/text.h"
#include "base/write_file.h"

namespace run_model {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEndRecord = 0x06054b50;
constexpr std::uint32_t kEndRecord64 = 0x06064b50;
constexpr std::uint32_t kEndLocator64 = 0x07064b50;

// Bytes of each record without its name, extra fields and comment.
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kCentralHeaderBytes = 46;
constexpr std::size_t kEndRecordBytes = 22;
constexpr std::size_t kEndRecord64Bytes = 56;
constexpr std::size_t kEndLocator64Bytes = 20;

constexpr std::uint16_t kExtraZip64 = 0x0001;
constexpr std::uint16_t kFlagEncrypted = 0x0001;
constexpr std::uint16_t kFlagUtf8 = 0x0800;

constexpr std::uint16_t kMethodStored = 0;
constexpr std::uint16_t kMethodDeflated = 8;

// A value that stands in a zip64 extra field instead.
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;

constexpr std::uint64_t kMaxEntries = 1 << 16;
constexpr std::uint64_t kMaxComment = 0xFFFF;

// 1980-01-01 00:00, the earliest time that zip knows: equal content gives equal files.
constexpr std::uint32_t kDosTime = 0x00210000;
constexpr std::uint16_t kVersionNeeded = 20;

void append(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), reader_(bytes, name_) {
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

std::uint64_t ZipReader::field(std::uint64_t offset, std::size_t bytes) const {
  const std::optional<std::uint64_t> value = reader_.find_number(offset, bytes);
  if (!value) fail("it is truncated");
  return *value;
}

// The record at the end of the file, before a comment of up to 64 KiB.
std::uint64_t ZipReader::find_end_record() const {
  if (reader_.all().empty()) fail("it is empty");
  if (reader_.all().size() >= 4 && field(0, 4) != kLocalHeader && field(0, 4) != kEndRecord) {
    fail("it does not begin with a zip signature");
  }
  if (reader_.all().size() >= kEndRecordBytes) {
    const std::uint64_t last = reader_.all().size() - kEndRecordBytes;
    const std::uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (std::uint64_t offset = last + 1; offset-- > first;) {
      if (field(offset, 4) != kEndRecord) continue;
      if (offset + kEndRecordBytes + field(offset + 20, 2) == reader_.all().size()) {
        return offset;
      }
    }
  }
  fail("its directory is missing, so it is truncated or damaged");
}

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t end = find_end_record();
  if (field(end + 4, 2) != 0) fail("it is one part of several");
  Directory directory{field(end + 10, 2), field(end + 16, 4), field(end + 12, 4)};
  std::uint64_t directory_end = end;
  const bool locator =
      end >= kEndLocator64Bytes && field(end - kEndLocator64Bytes, 4) == kEndLocator64;
  if (locator) {
    const std::uint64_t end64 = field(end - kEndLocator64Bytes + 8, 8);
    if (end64 > end || end - end64 < kEndRecord64Bytes || field(end64, 4) != kEndRecord64) {
      fail("its zip64 directory is damaged");
    }
    directory = {field(end64 + 32, 8), field(end64 + 48, 8), field(end64 + 40, 8)};
    directory_end = end64;
  }
  if (directory.offset > directory_end || directory.bytes > directory_end - directory.offset) {
    fail("its directory lies outside the file");
  }
  if (directory.bytes != directory_end - directory.offset) {
    fail("there are bytes between its directory and its end");
  }
  if (directory.entries > kMaxEntries ||
      directory.entries > directory.bytes / kCentralHeaderBytes) {
    fail("its directory claims " + std::to_string(directory.entries) + " members in " +
         std::to_string(directory.bytes) + " bytes");
  }
  return directory;
}

// Returns the offset of the next entry.
std::uint64_t ZipReader::read_entry(std::uint64_t offset, std::uint64_t end) {
  if (end - offset < kCentralHeaderBytes || field(offset, 4) != kCentralHeader) {
    fail("its directory is damaged");
  }
  const std::uint64_t name_bytes = field(offset + 28, 2);
  const std::uint64_t extra_bytes = field(offset + 30, 2);
  const std::uint64_t name_offset = offset + kCentralHeaderBytes;
  const std::uint64_t extra_offset = name_offset + name_bytes;
  const std::uint64_t next = extra_offset + extra_bytes + field(offset + 32, 2);
  if (next > end) fail("its directory is damaged");

  ZipEntry entry;
  entry.name = as_text(reader_.all().subspan(name_offset, name_bytes));
  entry.method = static_cast<std::uint16_t>(field(offset + 10, 2));
  entry.crc32 = static_cast<std::uint32_t>(field(offset + 16, 4));
  entry.compressed_bytes = field(offset + 20, 4);
  entry.bytes = field(offset + 24, 4);
  entry.header_offset = field(offset + 42, 4);
  read_zip64_extra(entry, extra_offset, extra_offset + extra_bytes);
  if (field(offset + 8, 2) & kFlagEncrypted) {
    fail("its member " + in_quotes(entry.name) + " is encrypted");
  }
  if (entry.method != kMethodStored && entry.method != kMethodDeflated) {
    fail("its member " + in_quotes(entry.name) + " is packed by method " +
         std::to_string(entry.method) + ", and only stored and deflated ones can be read");
  }
  entries_.push_back(std::move(entry));
  return next;
}

void ZipReader::read_zip64_extra(ZipEntry& entry, std::uint64_t offset, std::uint64_t end) const {
  while (offset < end && end - offset >= 4) {
    const std::uint64_t id = field(offset, 2);
    const std::uint64_t bytes = field(offset + 2, 2);
    offset += 4;
    if (bytes > end - offset) fail("an extra field in its directory is damaged");
    if (id == kExtraZip64) {
      // Only the values that do not fit in the record are there, in this order.
      std::uint64_t place = offset;
      for (std::uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset}) {
        if (*value != kIn64) continue;
        if (offset + bytes - place < 8) fail("a zip64 field in its directory is damaged");
        *value = field(place, 8);
        place += 8;
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
    if (entry.compressed_bytes > reader_.all().size() - total) {
      fail("its members claim more bytes than the file has");
    }
    total += entry.compressed_bytes;
  }
}

std::span<const std::byte> ZipReader::packed(const ZipEntry& entry) const {
  const std::uint64_t header = entry.header_offset;
  if (!reader_.contains(header, kLocalHeaderBytes) || field(header, 4) != kLocalHeader) {
    fail("the header of its member " + in_quotes(entry.name) + " is damaged");
  }
  const std::uint64_t name_bytes = field(header + 26, 2);
  const std::uint64_t start = header + kLocalHeaderBytes + name_bytes + field(header + 28, 2);
  if (!reader_.contains(start, entry.compressed_bytes)) {
    fail("its member " + in_quotes(entry.name) + " reaches beyond its end");
  }
  // No checksum covers the name, but it is there twice.
  if (as_text(reader_.all().subspan(header + kLocalHeaderBytes, name_bytes)) != entry.name) {
    fail("its member " + in_quotes(entry.name) + " has another name in its directory");
  }
  return reader_.all().subspan(start, entry.compressed_bytes);
}

std::vector<std::byte> ZipReader::read(const ZipEntry& entry) const {
  const std::span<const std::byte> source = packed(entry);
  std::vector<std::byte> member;
  if (entry.method == kMethodStored) {
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

void ZipWriter::add(const std::string& name,
                    std::initializer_list<std::span<const std::byte>> pieces) {
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) {
    crc = crc32_of(piece, crc);
    bytes += piece.size();
  }
  const std::uint64_t offset = members_.size();
  if (name.size() > 0xFFFF || count_ == 0xFFFF || offset + bytes >= kIn64 - 0x10000) {
    throw Error(ErrorKind::kMismatch, "the member " + in_quotes(name) + " of " +
                                          std::to_string(bytes) +
                                          " bytes does not fit in a zip file of up to 4 GiB");
  }

  std::string common;  // the fields that both headers have
  append(common, kVersionNeeded, 2);
  append(common, kFlagUtf8, 2);
  append(common, kMethodStored, 2);
  append(common, kDosTime, 4);
  append(common, crc, 4);
  append(common, bytes, 4);
  append(common, bytes, 4);
  append(common, name.size(), 2);
  append(common, 0, 2);  // extra fields

  append(members_, kLocalHeader, 4);
  members_ += common + name;
  for (const std::span<const std::byte> piece : pieces) {
    members_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }

  append(directory_, kCentralHeader, 4);
  append(directory_, kVersionNeeded, 2);
  directory_ += common;
  append(directory_, 0, 2);  // comment
  append(directory_, 0, 2);  // disk
  append(directory_, 0, 2);  // internal attributes
  append(directory_, 0, 4);  // external attributes
  append(directory_, offset, 4);
  directory_ += name;
  ++count_;
}

void ZipWriter::write(const std::filesystem::path& path) const {
  std::string end;
  append(end, kEndRecord, 4);
  append(end, 0, 2);  // this disk
  append(end, 0, 2);  // the directory's disk
  append(end, count_, 2);
  append(end, count_, 2);
  append(end, directory_.size(), 4);
  append(end, members_.size(), 4);
  append(end, 0, 2);  // comment
  write_file(path, {std::as_bytes(std::span(members_)), std::as_bytes(std::span(directory_)),
                    std::as_bytes(std::span(end))});
}

}  // namespace run_model
