#include "artifacts/checksum.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

// From `xxhsum -H3` 0.8.1 on the same bytes.
constexpr std::uint64_t kOfEmpty = 0x2d06800538d394c2;
constexpr std::uint64_t kOfAbc = 0x78af5f94892f3950;
constexpr std::uint64_t kOfLong = 0x7d16afd1aef7e39c;

TEST(ChecksumTest, IsXxh3) {
  const TemporaryFolder folder;
  EXPECT_EQ(file_xxh3_64(folder.write("e", "")), kOfEmpty);
  EXPECT_EQ(file_xxh3_64(folder.write("a", "abc")), kOfAbc);
  EXPECT_EQ(file_xxh3_64(folder.write("l", std::string(200'000, 'x'))), kOfLong);
}

// As threads of other runtimes and `ulimit -s 64` have it; 64-bit Arm gives none less than 128 KiB.
TEST(ChecksumTest, NeedsLittleStack) {
  const TemporaryFolder folder;
  struct Work {
    std::filesystem::path path;
    std::uint64_t checksum = 0;
  } work{folder.write("l", std::string(200'000, 'x'))};
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  const std::size_t stack = std::max<std::size_t>(std::size_t{1} << 16, PTHREAD_STACK_MIN);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, stack), 0);
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    auto& mine = *static_cast<Work*>(given);
    mine.checksum = file_xxh3_64(mine.path);
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &work), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  EXPECT_EQ(work.checksum, kOfLong);
}

class VerifyFileTest : public ::testing::Test {
 protected:
  void verify() const { verify_file(folder_ / "model.so", metadata_, "metadata.json"); }

  TemporaryFolder folder_;
  Metadata metadata_;
};

TEST_F(VerifyFileTest, AcceptsTheListedFile) {
  folder_.write("model.so", "abc");
  metadata_.files["model.so"] = {3, "", kOfAbc};
  EXPECT_NO_THROW(verify());
  metadata_.files["model.so"] = {3, "", std::nullopt};
  EXPECT_NO_THROW(verify());
}

TEST_F(VerifyFileTest, ListsAreOptional) {
  folder_.write("model.so", "abc");
  EXPECT_NO_THROW(verify());
}

TEST_F(VerifyFileTest, RefusesAnotherSize) {
  folder_.write("model.so", "abcd");
  metadata_.files["model.so"] = {3, "", kOfAbc};
  EXPECT_TRUE(throws_error([&] { verify(); }, ErrorKind::kFormat,
                           "has 4 bytes, but 'metadata.json' lists 3"));
}

TEST_F(VerifyFileTest, RefusesAnotherContent) {
  folder_.write("model.so", "abd");
  metadata_.files["model.so"] = {3, "", kOfAbc};
  EXPECT_TRUE(throws_error([&] { verify(); }, ErrorKind::kFormat,
                           "but 'metadata.json' lists 78af5f94892f3950"));
}

TEST_F(VerifyFileTest, ComparesTheSha256WhereNothingElseIsListed) {
  folder_.write("model.so", "abc");
  // FIPS 180-4's own example.
  const std::string of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  metadata_.files["model.so"] = {3, of_abc, std::nullopt};
  EXPECT_NO_THROW(verify());
  folder_.write("model.so", "abd");
  EXPECT_TRUE(throws_error([&] { verify(); }, ErrorKind::kFormat,
                           "has the SHA-256 a52d159f262b2c6ddb724a61840befc36eb30"
                           "c88877a4030b65cbe86298449c9, but 'metadata.json' "
                           "lists " +
                               of_abc));
}

TEST_F(VerifyFileTest, RefusesAFileThatIsNotListed) {
  folder_.write("model.so", "abc");
  metadata_.files["other.so"] = {3, "", kOfAbc};
  EXPECT_TRUE(throws_error([&] { verify(); }, ErrorKind::kMismatch, "but not '"));
}

TEST_F(VerifyFileTest, MissingFilesAreFileErrors) {
  metadata_.files["model.so"] = {3, "", kOfAbc};
  EXPECT_TRUE(throws_error([&] { verify(); }, ErrorKind::kFile, "model.so'"));
}

}  // namespace
}  // namespace run_model
