#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(MappedFileTest, GivesTheWholeContent) {
  const std::string content(10000, 'x');
  const auto file = MappedFile::open(folder_.write("a", content + "end"));
  ASSERT_EQ(file->bytes().size(), 10003u);
  EXPECT_EQ(std::memcmp(file->bytes().data() + 10000, "end", 3), 0);
}

TEST_F(MappedFileTest, StaysMappedAfterTheFileIsDeleted) {
  const auto path = folder_.write("a", "content");
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  EXPECT_EQ(std::memcmp(file->bytes().data(), "content", 7), 0);
}

TEST_F(MappedFileTest, ReleasedPagesAreReadFromTheFileAgain) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string content(3 * page + 5, 'a');
  content[page] = 'b';
  content.back() = 'z';
  const auto file = MappedFile::open(folder_.write("a", content));
  file->release(1, content.size() * 2);
  file->release(content.size() + 10, 5);
  EXPECT_EQ(std::memcmp(file->bytes().data(), content.data(), content.size()), 0);
}

TEST_F(MappedFileTest, SaysWhatIsWrong) {
  EXPECT_TRUE(throws_error([&] { MappedFile::open(folder_ / "none", "library"); }, ErrorKind::kFile,
                           {"library '", "none' does not exist"}));
  EXPECT_TRUE(throws_error([&] { MappedFile::open(folder_.write("a", "x") / "b", "library"); },
                           ErrorKind::kFile, "does not exist"));
  EXPECT_TRUE(throws_error([&] { MappedFile::open(folder_.path(), "library"); }, ErrorKind::kFile,
                           "is a directory, not a regular file"));
  EXPECT_TRUE(throws_error([&] { MappedFile::open(folder_.write("empty", ""), "parameters file"); },
                           ErrorKind::kFormat, {"parameters file '", "empty' is empty"}));
  EXPECT_TRUE(throws_error([] { MappedFile::open("/dev/null"); }, ErrorKind::kFile, "is a device"));
}

TEST_F(MappedFileTest, DoesNotWaitForAPipe) {
  const auto path = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(throws_error([&] { MappedFile::open(path); }, ErrorKind::kFile, "is a pipe"));
}

}  // namespace
}  // namespace run_model
