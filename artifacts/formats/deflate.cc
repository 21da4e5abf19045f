#include "artifacts/formats/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include <run_model/error.h>
#include "base/byte_reader.h"
#include "base/text.h"

namespace run_model {
namespace {

// Output of unknown size grows by no more than this ahead of what has been unpacked.
constexpr std::size_t kStep = std::size_t{1} << 18;

// zlib's windowBits: what surrounds the data.
enum class Wrapper { kNone = -MAX_WBITS, kGzip = 16 + MAX_WBITS };

class Inflater {
 public:
  Inflater(std::span<const std::byte> packed, Wrapper wrapper) : packed_(packed) {
    if (::inflateInit2(&stream_, static_cast<int>(wrapper)) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t left() const { return packed_.size() - consumed_; }
  std::size_t produced() const { return produced_; }

  // Unpacks to the beginning of `room`, and returns zlib's status. zlib counts in 32 bits, so large
  // data takes several calls.
  int unpack(std::span<std::byte> room) {
    const uInt in = chunk(left());
    const uInt out = chunk(room.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data() + consumed_));
    stream_.avail_in = in;
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = out;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    consumed_ += in - stream_.avail_in;
    produced_ += out - stream_.avail_out;
    return status;
  }

  bool filled_room() const { return stream_.avail_out == 0; }

  void begin_next_member() { ::inflateReset(&stream_); }

 private:
  static uInt chunk(std::size_t bytes) {
    return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
  }

  std::span<const std::byte> packed_;
  z_stream stream_{};
  std::size_t consumed_ = 0;
  std::size_t produced_ = 0;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) { return as_text(bytes).starts_with("\x1f\x8b"); }

std::vector<std::byte> gunzip(std::span<const std::byte> packed, std::size_t limit,
                              const std::string& name) {
  std::vector<std::byte> out;
  Inflater inflater(packed, Wrapper::kGzip);
  // One byte of room beyond the limit shows what would exceed it.
  while (inflater.left() > 0 && inflater.produced() <= limit) {
    const std::size_t produced = inflater.produced();
    if (produced == out.size()) {
      out.resize(produced + std::min(std::max(kStep, produced), limit - produced + 1));
    }
    const int status = inflater.unpack(std::span(out).subspan(produced));
    if (status == Z_STREAM_END && inflater.produced() <= limit) {
      if (inflater.left() == 0) {
        out.resize(inflater.produced());
        return out;
      }
      inflater.begin_next_member();
      continue;
    }
    if (status != Z_OK && !(status == Z_BUF_ERROR && inflater.filled_room())) break;
  }
  if (inflater.produced() > limit) {
    throw Error(ErrorKind::kFormat,
                name + " unpacks to more than " + std::to_string(limit) + " bytes",
                "it is no artifact, or too large for this machine");
  }
  throw Error(ErrorKind::kFormat, name + " is a gzip file that is damaged or cut off",
              "copy or make it again");
}

std::vector<std::byte> inflate_exactly(std::span<const std::byte> packed, std::uint64_t bytes,
                                       const std::string& name) {
  if (!can_inflate_to(packed.size(), bytes)) {
    throw Error(ErrorKind::kFormat, name + " claims to unpack from " +
                                        std::to_string(packed.size()) + " to " +
                                        std::to_string(bytes) + " bytes, which is impossible");
  }
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
    throw Error(ErrorKind::kFormat, name + " unpacks to " + std::to_string(bytes) +
                                        " bytes, which is too large for this machine");
  }
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  Inflater inflater(packed, Wrapper::kNone);
  // One spare byte of room shows data that is longer than it claims to be.
  std::byte spare{};
  int status = Z_OK;
  while (status == Z_OK && inflater.produced() <= out.size()) {
    const std::span<std::byte> rest = std::span(out).subspan(inflater.produced());
    status = inflater.unpack(rest.empty() ? std::span(&spare, 1) : rest);
  }
  if (status != Z_STREAM_END || inflater.produced() != out.size()) {
    throw Error(ErrorKind::kFormat, name + " does not unpack to the " + std::to_string(bytes) +
                                        " bytes that it claims, so it is damaged");
  }
  return out;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t previous) {
  // zlib takes a null pointer for a request of the initial value.
  if (bytes.empty()) return previous;
  return static_cast<std::uint32_t>(
      ::crc32_z(previous, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace run_model
