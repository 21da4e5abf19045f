#include "base/byte_reader.h"

#include <algorithm>
#include <utility>

namespace run_model {

Error malformed_bytes(const ByteFault& fault) {
  return {ErrorKind::kFormat,
          std::string(fault.source) + " is malformed at byte " + std::to_string(fault.offset) +
              ": " + fault.problem,
          fault.hint};
}

ByteReader ByteReader::part(std::uint64_t position, std::uint64_t length,
                            std::string_view what) const {
  return {bytes_at(position, length, what), source_, format_, base_ + position};
}

std::uint64_t ByteReader::uleb128(std::string_view what) {
  const std::uint64_t start = position_;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::optional<std::uint64_t> byte = find_number(position_, 1);
    if (!byte) break;
    ++position_;
    value |= (*byte & 0x7F) << shift;
    if ((*byte & 0x80) == 0) return value;
  }
  position_ = start;
  fail((what.empty() ? "a number" : std::string(what)) + " has no end");
}

std::size_t ByteReader::count(std::uint64_t limit, std::size_t item_bytes, std::string_view what) {
  const std::uint64_t start = position_;
  const std::uint64_t value = u64(what);
  const std::size_t left = remaining();
  if (value > limit) {
    position_ = start;
    fail(std::string(what) + " is " + std::to_string(value) + ", more than the " +
         std::to_string(limit) + " that make sense");
  }
  if (item_bytes != 0 && value > left / item_bytes) {
    position_ = start;
    fail(std::string(what) + " is " + std::to_string(value) + ", more than the remaining " +
         std::to_string(left) + " bytes can hold");
  }
  return static_cast<std::size_t>(value);
}

std::string ByteReader::string(std::uint64_t max_length, std::string_view what) {
  const std::size_t length = count(max_length, 1, "the length of " + std::string(what));
  const std::span<const std::byte> view = bytes(length, what);
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

std::string_view ByteReader::zero_terminated(std::string_view what) {
  const std::span<const std::byte> rest = bytes_.last(remaining());
  const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
  if (end == rest.end()) {
    fail((what.empty() ? "a text" : std::string(what)) + " has no zero byte at its end");
  }
  const auto length = static_cast<std::size_t>(end - rest.begin());
  position_ += length + 1;
  return {reinterpret_cast<const char*>(rest.data()), length};
}

void ByteReader::fail(std::string problem, std::string hint) const {
  throw format_.error(
      {source_, offset(), base_ + bytes_.size(), std::move(problem), std::move(hint), false});
}

void ByteReader::fail_past_end(std::uint64_t position, std::uint64_t length,
                               std::string_view what) const {
  const std::uint64_t left = position < bytes_.size() ? bytes_.size() - position : 0;
  std::string problem = (what.empty() ? "what comes next" : std::string(what)) + " takes " +
                        std::to_string(length) + " bytes, but only " + std::to_string(left) +
                        " are left";
  throw format_.error(
      {source_, base_ + position, base_ + bytes_.size(), std::move(problem), {}, true});
}

}  // namespace run_model
