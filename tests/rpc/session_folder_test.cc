#include "rpc/session_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/temporary_folder.h"

namespace run_model::rpc {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(SessionFolderTest, WritesListsAndRemoves) {
  const TemporaryFolder folder;
  SessionFolder files(folder.path(), 100);
  files.write("b", bytes_of("two"));
  files.write("a", bytes_of("one"));
  files.write("b", bytes_of("three"));
  EXPECT_TRUE(has_elements(files.names(), {"a", "b"}));
  EXPECT_EQ(TemporaryFolder::read(files.file("b")), "three");
  EXPECT_TRUE(files.remove("a"));
  EXPECT_TRUE(has_elements(files.names(), {"b"}));
  EXPECT_FALSE(files.remove("a"));
  EXPECT_THROW(files.file("a"), Error);
}

TEST(SessionFolderTest, RefusesNamesThatAreMoreThanAName) {
  const TemporaryFolder folder;
  SessionFolder files(folder.path(), 100);
  const std::string too_long(256, 'x');
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/a"),
        std::string("..\\a"), std::string(".hidden"), std::string("a\nb"), std::string("a\0b", 3),
        too_long}) {
    EXPECT_THROW(files.write(name, bytes_of("x")), Error) << name;
    EXPECT_THROW(files.file(name), Error) << name;
    EXPECT_THROW(files.remove(name), Error) << name;
    EXPECT_THROW(files.place(name), Error) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SessionFolderTest, LinksAreNotFollowed) {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const std::filesystem::path secret = elsewhere.write("secret", "secret");
  SessionFolder files(folder.path(), 100);
  std::filesystem::create_symlink(secret, folder / "link");
  EXPECT_THROW(files.file("link"), Error);
  // Writing replaces the link, not what it leads to.
  files.write("link", bytes_of("new"));
  EXPECT_EQ(TemporaryFolder::read(secret), "secret");
  EXPECT_EQ(TemporaryFolder::read(files.file("link")), "new");
}

TEST(SessionFolderTest, LimitsTheBytesOfAllFiles) {
  const TemporaryFolder folder;
  SessionFolder files(folder.path(), 10);
  files.write("a", bytes_of("123456"));
  EXPECT_THROW(files.write("b", bytes_of("12345")), Error);
  EXPECT_TRUE(has_elements(files.names(), {"a"}));
  files.write("b", bytes_of("1234"));
  EXPECT_THROW(files.write("c", ~std::uint64_t{0}, {}), Error);
}

TEST(SessionFolderTest, AWriteThatFailsLeavesTheOldFile) {
  const TemporaryFolder folder;
  SessionFolder files(folder.path(), 100);
  files.write("a", bytes_of("old"));
  int calls = 0;
  const auto next = [&calls](std::span<std::byte> into) -> std::size_t {
    if (++calls == 2) throw std::runtime_error("gone");
    into[0] = std::byte{'n'};
    return 1;
  };
  EXPECT_THROW(files.write("a", 3, next), std::runtime_error);
  EXPECT_EQ(TemporaryFolder::read(files.file("a")), "old");
  EXPECT_TRUE(has_elements(files.names(), {"a"}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace run_model::rpc
