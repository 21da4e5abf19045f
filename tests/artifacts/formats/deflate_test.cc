#include "artifacts/formats/deflate.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

std::string packed() {
  return TemporaryFolder::read(RUN_MODEL_SOURCE_DIR "/tests/artifacts/data/gnu.tar.gz");
}

std::string unpacked(const std::string& bytes, std::size_t limit = 1 << 20) {
  return std::string(as_text(gunzip(std::as_bytes(std::span(bytes)), limit, "'a.gz'")));
}

TEST(Gunzip, JoinsMembers) {
  const std::string once = unpacked(packed());
  EXPECT_EQ(once.size() % 512, 0U);
  EXPECT_EQ(unpacked(packed() + packed()), once + once);
}

TEST(Gunzip, StopsAtTheLimit) {
  const std::size_t size = unpacked(packed()).size();
  EXPECT_EQ(unpacked(packed(), size).size(), size);
  EXPECT_TRUE(throws_error([&] { unpacked(packed(), size - 1); }, ErrorKind::kFormat,
                           "'a.gz' unpacks to more than"));
}

TEST(Gunzip, RefusesWhatIsCutOffOrDamaged) {
  const std::string whole = packed();
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // the CRC
  for (const std::string& bytes : {whole.substr(0, whole.size() - 1), whole.substr(0, 10), damaged,
                                   whole + "garbage", std::string("\x1f\x8b")}) {
    EXPECT_TRUE(throws_error([&] { unpacked(bytes); }, ErrorKind::kFormat, "damaged or cut off"));
  }
}

TEST(Gunzip, KnowsItsFiles) {
  const std::string whole = packed();
  EXPECT_TRUE(is_gzip(std::as_bytes(std::span(whole))));
  EXPECT_FALSE(is_gzip({}));
  EXPECT_FALSE(is_gzip(std::as_bytes(std::span("ustar", 5))));
}

}  // namespace
}  // namespace run_model
