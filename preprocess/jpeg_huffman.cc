#include "preprocess/jpeg_huffman.h"

#include <algorithm>

#include <run_model/error.h>

namespace run_model {
namespace {

[[noreturn]] void damaged(const std::string& what, const std::string& found) {
  throw Error(ErrorKind::kImage, what + ": the JPEG picture is damaged: " + found,
              "copy or download the file again");
}

}  // namespace

void HuffmanTable::read(PictureReader& reader, const std::string& what) {
  const Bytes counts = reader.take(kLongest);
  std::size_t total = 0;
  for (const std::uint8_t count : counts) {
    total += count;
  }
  if (total > symbols_.size()) {
    damaged(what, "a Huffman table has " + std::to_string(total) + " codes");
  }
  const Bytes symbols = reader.take(total);
  std::copy(symbols.begin(), symbols.end(), symbols_.begin());
  fast_.fill(0);
  std::uint32_t code = 0;
  std::int32_t index = 0;
  for (int length = 1; length <= kLongest; ++length) {
    const std::int32_t count = counts[static_cast<std::size_t>(length - 1)];
    if (code + static_cast<std::uint32_t>(count) > 1U << length) {
      damaged(what, "the code lengths of a Huffman table are impossible");
    }
    offset_[static_cast<std::size_t>(length)] = index - static_cast<std::int32_t>(code);
    for (std::int32_t i = 0; i < count; ++i, ++code, ++index) {
      if (length <= kFastBits) {
        const auto entry =
            static_cast<std::uint16_t>(length << 8 | symbols_[static_cast<std::size_t>(index)]);
        std::fill_n(fast_.begin() + (code << (kFastBits - length)), 1 << (kFastBits - length),
                    entry);
      }
    }
    end_[static_cast<std::size_t>(length)] = code << (kLongest - length);
    code <<= 1;
  }
  defined_ = true;
}

// Makes at least `count` bits available where the data has them.
void ScanBits::need(int count) {
  while (available_ < count && available_ <= 48) {
    if (position_ >= file_.size()) {
      return;
    }
    const std::uint8_t byte = file_[position_];
    if (byte == 0xFF) {
      if (position_ + 1 >= file_.size() || file_[position_ + 1] != 0) {
        return;
      }
      ++position_;
    }
    ++position_;
    buffer_ = buffer_ << 8 | byte;
    available_ += 8;
  }
}

int ScanBits::symbol(const HuffmanTable& table) {
  need(HuffmanTable::kLongest);
  // Bits past the end read as 0; the length check below finds a code that used them.
  const std::uint64_t aligned = available_ >= HuffmanTable::kLongest
                                    ? buffer_ >> (available_ - HuffmanTable::kLongest)
                                    : buffer_ << (HuffmanTable::kLongest - available_);
  const auto next = static_cast<std::uint32_t>(aligned & 0xFFFF);
  int length = 0;
  int symbol = 0;
  if (const std::uint16_t entry = table.fast_[next >> (16 - HuffmanTable::kFastBits)]; entry != 0) {
    length = entry >> 8;
    symbol = entry & 0xFF;
  } else {
    length = HuffmanTable::kFastBits + 1;
    while (length <= HuffmanTable::kLongest &&
           next >= table.end_[static_cast<std::size_t>(length)]) {
      ++length;
    }
    if (length > HuffmanTable::kLongest && available_ >= HuffmanTable::kLongest) {
      damaged(what_, "a code is in no Huffman table before byte " + std::to_string(position_));
    }
    if (length <= HuffmanTable::kLongest) {
      const auto code = static_cast<std::int32_t>(next >> (HuffmanTable::kLongest - length));
      symbol = table.symbols_[static_cast<std::size_t>(
          code + table.offset_[static_cast<std::size_t>(length)])];
    }
  }
  if (length > available_) {
    damaged(what_,
            "the compressed data of a scan ends early, at byte " + std::to_string(position_));
  }
  available_ -= length;
  return symbol;
}

std::uint32_t ScanBits::bits(int count) {
  need(count);
  if (count > available_) {
    damaged(what_,
            "the compressed data of a scan ends early, at byte " + std::to_string(position_));
  }
  available_ -= count;
  return static_cast<std::uint32_t>(buffer_ >> available_) & ((1U << count) - 1);
}

std::size_t ScanBits::next_marker() const {
  std::size_t position = position_;
  while (position + 1 < file_.size()) {
    // 0xFF before 0xFF is padding, and before 0 a byte of data.
    if (file_[position] == 0xFF && file_[position + 1] != 0 && file_[position + 1] != 0xFF) {
      return position;
    }
    ++position;
  }
  damaged(what_, "the file ends at byte " + std::to_string(file_.size()) + " within a scan");
}

void ScanBits::restart(int index) {
  const std::size_t marker = next_marker();
  const int found = file_[marker + 1];
  if (found != 0xD0 + index) {
    damaged(what_, "a restart marker is missing or out of order at byte " + std::to_string(marker));
  }
  position_ = marker + 2;
  available_ = 0;
}

std::size_t ScanBits::end() const {
  const std::size_t marker = next_marker();
  if (file_[marker + 1] >= 0xD0 && file_[marker + 1] <= 0xD7) {
    damaged(what_,
            "a scan has more restart markers than it needs, at byte " + std::to_string(marker));
  }
  return marker;
}

}  // namespace run_model
