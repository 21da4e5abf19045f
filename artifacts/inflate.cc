#include "artifacts/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include <run_model/error.h>

namespace run_model {
namespace {

// Deflate cannot pack better than 1032 to 1 (zlib's technical notes).
constexpr std::uint64_t kMaxRatio = 1032;

class InflateStream {
 public:
  InflateStream() : ready_(::inflateInit2(&stream, -MAX_WBITS) == Z_OK) {
    if (!ready_) throw std::bad_alloc();
  }
  ~InflateStream() {
    if (ready_) ::inflateEnd(&stream);
  }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  z_stream stream{};

 private:
  bool ready_;
};

uInt chunk(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

std::vector<std::byte> inflate_exactly(std::span<const std::byte> packed, std::uint64_t bytes,
                                       const std::string& name) {
  if (bytes / kMaxRatio > packed.size()) {
    throw Error(ErrorKind::kFormat, name + " claims to unpack from " +
                                        std::to_string(packed.size()) + " to " +
                                        std::to_string(bytes) + " bytes, which is impossible");
  }
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
    throw Error(ErrorKind::kFormat, name + " unpacks to " + std::to_string(bytes) +
                                        " bytes, which is too large for this machine");
  }
  std::vector<std::byte> out(static_cast<std::size_t>(bytes));
  InflateStream inflater;
  z_stream& stream = inflater.stream;
  std::size_t consumed = 0, produced = 0;
  int status = Z_OK;
  // zlib counts in 32 bits, so large data goes through in pieces. One spare byte of room shows data
  // that is longer than it claims to be.
  while (status == Z_OK) {
    Bytef spare = 0;
    const bool full = produced == out.size();
    const uInt in = chunk(packed.size() - consumed);
    const uInt room = full ? 1 : chunk(out.size() - produced);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + consumed));
    stream.avail_in = in;
    stream.next_out = full ? &spare : reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = room;
    status = ::inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += room - stream.avail_out;
    if (produced > out.size()) break;
  }
  if (status != Z_STREAM_END || produced != out.size()) {
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
