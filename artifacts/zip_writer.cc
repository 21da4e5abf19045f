#include "artifacts/zip_writer.h"

#include <run_model/error.h>
#include "artifacts/inflate.h"
#include "artifacts/zip_format.h"
#include "base/text.h"
#include "base/write_file.h"

namespace run_model {
namespace {

// 1980-01-01 00:00, the earliest time that zip knows: equal content gives equal files.
constexpr std::uint32_t kDosTime = 0x00210000;
constexpr std::uint16_t kVersionNeeded = 20;

void append(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

void ZipWriter::add(const std::string& name,
                    std::initializer_list<std::span<const std::byte>> pieces) {
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) {
    crc = crc32_of(piece, crc);
    bytes += piece.size();
  }
  const std::uint64_t offset = members_.size();
  if (name.size() > 0xFFFF || count_ == 0xFFFF || offset + bytes >= zip::kIn64 - 0x10000) {
    throw Error(ErrorKind::kMismatch, "the member " + in_quotes(name) + " of " +
                                          std::to_string(bytes) +
                                          " bytes does not fit in a zip file of up to 4 GiB");
  }

  std::string common;  // the fields that both headers have
  append(common, kVersionNeeded, 2);
  append(common, zip::kFlagUtf8, 2);
  append(common, zip::kMethodStored, 2);
  append(common, kDosTime, 4);
  append(common, crc, 4);
  append(common, bytes, 4);
  append(common, bytes, 4);
  append(common, name.size(), 2);
  append(common, 0, 2);  // extra fields

  append(members_, zip::kLocalHeader, 4);
  members_ += common + name;
  for (const std::span<const std::byte> piece : pieces) {
    members_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }

  append(directory_, zip::kCentralHeader, 4);
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
  append(end, zip::kEndRecord, 4);
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
