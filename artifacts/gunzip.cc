#include "artifacts/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// Output grows by no more than this ahead of what has been unpacked.
constexpr std::size_t kStep = std::size_t{1} << 18;

struct Stream {
  // 16 on top of the window: a gzip wrapper, and nothing else.
  Stream() : ready(::inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK) {
    if (!ready) throw std::bad_alloc();
  }
  ~Stream() {
    if (ready) ::inflateEnd(&stream);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  z_stream stream{};
  bool ready;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) { return as_text(bytes).starts_with("\x1f\x8b"); }

std::vector<std::byte> gunzip(std::span<const std::byte> packed, std::size_t limit,
                              const std::string& name) {
  std::vector<std::byte> out;
  std::size_t consumed = 0, produced = 0;
  Stream inflater;
  z_stream& stream = inflater.stream;
  // One byte of room beyond the limit shows what would exceed it.
  while (consumed < packed.size() && produced <= limit) {
    if (produced == out.size()) {
      out.resize(produced + std::min(std::max(kStep, produced), limit - produced + 1));
    }
    const auto in = static_cast<uInt>(
        std::min<std::size_t>(packed.size() - consumed, std::numeric_limits<uInt>::max()));
    const auto room = static_cast<uInt>(
        std::min<std::size_t>(out.size() - produced, std::numeric_limits<uInt>::max()));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + consumed));
    stream.avail_in = in;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = room;
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += room - stream.avail_out;
    if (status == Z_STREAM_END && produced <= limit) {
      if (consumed == packed.size()) {
        out.resize(produced);
        return out;
      }
      ::inflateReset(&stream);
      continue;
    }
    if (status != Z_OK && !(status == Z_BUF_ERROR && stream.avail_out == 0)) break;
  }
  if (produced > limit) {
    throw Error(ErrorKind::kFormat,
                name + " unpacks to more than " + std::to_string(limit) + " bytes",
                "it is no artifact, or too large for this machine");
  }
  throw Error(ErrorKind::kFormat, name + " is a gzip file that is damaged or cut off",
              "copy or make it again");
}

}  // namespace run_model
