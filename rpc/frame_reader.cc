#include "rpc/frame_reader.h"

#include <algorithm>
#include <array>
#include <bit>

#include <run_model/error.h>

namespace run_model::rpc {

static_assert(std::endian::native == std::endian::little, "frames are read as they lie in memory");

void FrameReader::check(std::uint64_t bytes) const {
  if (bytes <= left_) return;
  throw Error(ErrorKind::kFormat,
              "a request is shorter than what it says it holds: " + std::to_string(bytes) +
                  " more bytes expected, " + std::to_string(left_) + " left");
}

void FrameReader::read(std::span<std::byte> into) {
  check(into.size());
  connection_.read(into);
  left_ -= into.size();
}

std::size_t FrameReader::read_some(std::span<std::byte> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_)));
  if (into.empty()) check(1);
  const std::size_t count = connection_.read_some(into);
  left_ -= count;
  return count;
}

std::string FrameReader::text(std::uint64_t length) {
  check(length);
  std::string text(static_cast<std::size_t>(length), '\0');
  read(std::as_writable_bytes(std::span(text)));
  return text;
}

void FrameReader::skip_rest() {
  std::array<std::byte, 16 * 1024> buffer;
  while (left_ > 0) read_some(buffer);
}

void FrameReader::check_end() const {
  if (left_ == 0) return;
  throw Error(ErrorKind::kFormat, "a request is longer than what it holds: " +
                                      std::to_string(left_) + " bytes left over");
}

}  // namespace run_model::rpc
