// Every small file of tests/preprocess/data/pictures, cut off and changed at each
// damage_stride()-th byte: each gives an Error(kImage) or a picture, never a crash. Run it under
// AddressSanitizer.
#include <gtest/gtest.h>

#include <run_model/decode.h>
#include <run_model/error.h>
#include "fixtures.h"
#include "tests/damage_stride.h"

namespace run_model {
namespace {

using File = std::vector<std::uint8_t>;

struct Fixture {
  std::string name;
  File bytes;
};

std::vector<Fixture> all_fixtures() {
  std::vector<Fixture> result;
  for (const auto& picture : fixtures::pictures()) {
    const std::string name = picture["file"];
    result.push_back({name, fixtures::read_file(fixtures::data_path("pictures/" + name))});
  }
  return result;
}

// The checksum of the decoded picture, or nothing when the file is refused as it should be.
std::optional<std::uint32_t> decode(const File& bytes, const std::string& name) {
  try {
    return fixtures::checksum(decode_picture(bytes, name).image);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kImage) << error.what();
    return std::nullopt;
  }
}

// What is missing must not be made up: the picture is refused, or nothing that matters was cut off.
TEST(Corruption, ATruncatedFileIsRefusedOrComplete) {
  for (const Fixture& fixture : all_fixtures()) {
    const std::optional<std::uint32_t> intact = decode(fixture.bytes, fixture.name);
    ASSERT_TRUE(intact) << fixture.name;
    for (std::size_t size = 0; size < fixture.bytes.size(); size += damage_stride()) {
      const File cut(fixture.bytes.begin(),
                     fixture.bytes.begin() + static_cast<std::ptrdiff_t>(size));
      const std::optional<std::uint32_t> result = decode(cut, fixture.name);
      EXPECT_TRUE(!result || result == intact) << fixture.name << " cut off after " << size
                                               << " of " << fixture.bytes.size() << " bytes";
    }
  }
}

TEST(Corruption, AChangedByteNeverCrashes) {
  for (const Fixture& fixture : all_fixtures()) {
    File changed = fixture.bytes;
    for (std::size_t i = 0; i < changed.size(); i += damage_stride()) {
      for (const std::uint8_t mask : {0x01, 0x10, 0x80, 0xFF}) {
        changed[i] ^= mask;
        decode(changed, fixture.name);
        changed[i] ^= mask;
      }
    }
  }
}

TEST(Corruption, EveryChangeInAPngIsRefused) {
  int files = 0;
  for (const Fixture& fixture : all_fixtures()) {
    if (!fixture.name.ends_with(".png")) {
      continue;
    }
    ++files;
    File changed = fixture.bytes;
    for (std::size_t i = 0; i < changed.size(); i += damage_stride()) {
      for (const std::uint8_t mask : {0x01, 0x08, 0xFF}) {
        changed[i] ^= mask;
        EXPECT_FALSE(decode(changed, fixture.name)) << fixture.name << ", byte " << i;
        changed[i] ^= mask;
      }
    }
  }
  EXPECT_GT(files, 25);
}

// A forged PNG has the right checksums: behind them every byte is hostile.
TEST(Corruption, AChangedPngWithRightChecksumsNeverCrashes) {
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kFrame = 12;  // length, type and checksum of a chunk
  const auto number = [](const File& file, std::size_t at) {
    return std::size_t{file[at]} << 24 | std::size_t{file[at + 1]} << 16 |
           std::size_t{file[at + 2]} << 8 | file[at + 3];
  };
  for (const Fixture& fixture : all_fixtures()) {
    if (!fixture.name.ends_with(".png")) {
      continue;
    }
    File changed = fixture.bytes;
    for (std::size_t chunk = kSignature; chunk < changed.size();) {
      const std::size_t length = number(fixture.bytes, chunk);
      for (std::size_t i = chunk + 8; i < chunk + 8 + length; i += damage_stride()) {
        for (const std::uint8_t mask : {0x01, 0x04, 0x40, 0xFF}) {
          changed[i] ^= mask;
          const std::uint32_t sum = fixtures::checksum({changed.data() + chunk + 4, 4 + length});
          for (std::size_t byte = 0; byte < 4; ++byte) {
            changed[chunk + 8 + length + byte] = static_cast<std::uint8_t>(sum >> (24 - 8 * byte));
          }
          decode(changed, fixture.name);
          changed = fixture.bytes;
        }
      }
      chunk += kFrame + length;
    }
  }
}

TEST(Corruption, AMissingOrRepeatedPieceNeverCrashes) {
  for (const Fixture& fixture : all_fixtures()) {
    for (std::size_t at = 0; at + 4 < fixture.bytes.size(); at += 3 * damage_stride()) {
      const auto place = static_cast<std::ptrdiff_t>(at);
      File shorter = fixture.bytes;
      shorter.erase(shorter.begin() + place, shorter.begin() + place + 4);
      decode(shorter, fixture.name);
      File longer = fixture.bytes;
      longer.insert(longer.begin() + place, fixture.bytes.begin(), fixture.bytes.begin() + 4);
      decode(longer, fixture.name);
    }
  }
}

// Damage that leaves a picture must leave the same one every time: nothing uninitialised shows.
TEST(Corruption, ADamagedPictureIsTheSameOnEveryRun) {
  for (const Fixture& fixture : all_fixtures()) {
    File changed = fixture.bytes;
    for (std::size_t i = 0; i < changed.size(); i += 5 * damage_stride()) {
      changed[i] ^= 0x5A;
      const std::optional<std::uint32_t> once = decode(changed, fixture.name);
      // Leaves other bytes in freed memory than the first run did.
      const File dirt(fixture.bytes.size() * 7 + 4096, 0xA7);
      EXPECT_EQ(decode(changed, fixture.name), once) << fixture.name << ", byte " << i;
      changed[i] ^= 0x5A;
    }
  }
}

}  // namespace
}  // namespace run_model
