#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/text.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

TEST(ReadFileTest, ReadsWholeFilesUpToTheLimit) {
  const TemporaryFolder folder;
  const std::string text(200'000, 'x');
  const std::filesystem::path file = folder.write("f", text);
  EXPECT_EQ(as_text(read_file(file, text.size(), "a text")), text);
  EXPECT_TRUE(throws_error([&] { read_file(file, text.size() - 1, "a text"); }, ErrorKind::kFormat,
                           "larger than 199999 bytes, which is too large for a"));
  EXPECT_TRUE(read_file(folder.write("e", ""), 10, "a text").empty());
}

TEST(ReadFileTest, ReadsPipesOfUnknownLength) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(300'000, 'p');
  std::thread writer([&] {
    std::size_t written = 0;
    while (written < text.size()) {
      const ssize_t count = ::write(ends[1], text.data() + written, text.size() - written);
      if (count <= 0) break;
      written += static_cast<std::size_t>(count);
    }
    ::close(ends[1]);
  });
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  const std::vector<std::byte> bytes = read_file(path, 1 << 20, "a text");
  writer.join();
  ::close(ends[0]);
  EXPECT_EQ(as_text(bytes), text);
}

TEST(ReadFileTest, ReadsTheStartOnly) {
  const TemporaryFolder folder;
  EXPECT_EQ(as_text(read_file_start(folder.write("f", "abcdef"), 4)), "abcd");
  EXPECT_EQ(as_text(read_file_start(folder / "f", 400)), "abcdef");
}

TEST(ReadFileTest, FailuresNameTheFile) {
  EXPECT_TRUE(throws_error([] { read_file("/nonexistent", 10, "a text"); }, ErrorKind::kFile,
                           "cannot read '/nonexistent' as a text: No such file"));
  EXPECT_TRUE(
      throws_error([] { read_file("/", 10, "a text"); }, ErrorKind::kFile, "Is a directory"));
}

TEST(OwnedFdTest, ClosesWhatItOwnsOnce) {
  const TemporaryFolder folder;
  int number = -1;
  {
    OwnedFd file = open_to_read(folder.write("f", "abc"));
    ASSERT_TRUE(file);
    number = file.get();
    const OwnedFd owner = std::move(file);
    EXPECT_FALSE(file);
    EXPECT_EQ(owner.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  EXPECT_FALSE(open_to_read(folder / "none"));
  EXPECT_EQ(errno, ENOENT);
}

TEST(ReadToEndTest, GivesWhatIsLeftUpToTheLimit) {
  const TemporaryFolder folder;
  const OwnedFd file = open_to_read(folder.write("f", "abcdef"));
  EXPECT_EQ(as_text(read_to_end(file.get(), 2).value()), "ab");
  EXPECT_EQ(as_text(read_to_end(file.get(), 100).value()), "cdef");
  const OwnedFd directory = open_to_read("/");
  EXPECT_EQ(read_to_end(directory.get(), 100), std::nullopt);
  EXPECT_EQ(errno, EISDIR);
}

}  // namespace
}  // namespace run_model
