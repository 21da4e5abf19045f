#include "base/write_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(AtomicFileTest, WritesThePiecesInOrder) {
  const TemporaryFolder folder;
  const std::string a = "one", b = "two";
  write_file(folder / "f", {bytes_of(a), {}, bytes_of(b)});
  EXPECT_EQ(TemporaryFolder::read(folder / "f"), "onetwo");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, ReplacesAnOlderFile) {
  const TemporaryFolder folder;
  folder.write("f", "a much longer text than the new one");
  const std::string text = "new";
  write_file(folder / "f", {bytes_of(text)});
  EXPECT_EQ(TemporaryFolder::read(folder / "f"), "new");
}

TEST(AtomicFileTest, KeepsSymbolicLinks) {
  const TemporaryFolder folder;
  folder.write("real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  const std::string text = "new";
  write_file(folder / "link", {bytes_of(text)});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(TemporaryFolder::read(folder / "real"), "new");
}

TEST(AtomicFileTest, FailureLeavesNothingBehind) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "taken");
  folder.write("taken/file", "");
  const std::string text = "new";
  EXPECT_TRUE(throws_error([&] { write_file(folder / "taken", {bytes_of(text)}); },
                           ErrorKind::kFile, "taken'"));
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(AtomicFileTest, MissingFoldersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_error([&] { write_file(folder / "no/f", {}); }, ErrorKind::kFile,
                           "make its folder first"));
}

TEST(AtomicFileTest, WritesToDevicesDirectly) {
  const std::string text = "gone";
  EXPECT_NO_THROW(write_file("/dev/null", {bytes_of(text)}));
  EXPECT_TRUE(throws_error([&] { write_file("/dev/full", {bytes_of(text)}); }, ErrorKind::kFile,
                           "cannot write '/dev/full'"));
  struct stat info{};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(CheckCanWriteTest, SaysBeforehandWhatWritingWould) {
  const TemporaryFolder folder;
  folder.write("old", "text");
  for (const char* path : {"old", "new"}) EXPECT_NO_THROW(check_can_write(folder / path)) << path;
  EXPECT_NO_THROW(check_can_write("/dev/full"));
  EXPECT_EQ(TemporaryFolder::read(folder / "old"), "text");
  EXPECT_EQ(files_in(folder.path()), 1U);
  EXPECT_TRUE(throws_error([&] { check_can_write(folder / "no/f"); }, ErrorKind::kFile,
                           "make its folder first"));
  EXPECT_TRUE(
      throws_error([&] { check_can_write(folder.path()); }, ErrorKind::kFile, "Is a directory"));
}

}  // namespace
}  // namespace run_model
