#include "rpc/server/authentication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/server/wire.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

Digest hmac(const std::string& key, const std::string& message) {
  return hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(message)));
}

// Test cases 1, 2, 6 and 7 of RFC 4231.
TEST(HmacTest, GivesWhatTheRfcSays) {
  EXPECT_EQ(hex(hmac(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hex(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(
      hex(hmac(std::string(131, '\xaa'),
               "This is a test using a larger than block-size key and a larger than block-size "
               "data. The key needs to be hashed before being used by the HMAC algorithm.")),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(HmacTest, ComparesAllBytes) {
  Digest a = hmac("k", "m");
  Digest b = a;
  EXPECT_TRUE(equal_in_constant_time(a, b));
  b[31] ^= std::byte{1};
  EXPECT_FALSE(equal_in_constant_time(a, b));
  EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
}

class AuthKeyTest : public ::testing::Test {
 protected:
  std::filesystem::path file(std::string_view content, mode_t mode = 0600) {
    const std::filesystem::path path = folder_.write("key", content);
    ::chmod(path.c_str(), mode);
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(AuthKeyTest, IsTheFileWithoutItsLastNewline) {
  const std::vector<std::byte> key = read_auth_key(file("0123456789abcdef \r\n"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(key.data()), key.size()), "0123456789abcdef");
}

TEST_F(AuthKeyTest, MustBeItsOwnersAlone) {
  for (const mode_t mode : {0640, 0604, 0620, 0777}) {
    EXPECT_TRUE(throws_error([&] { read_auth_key(file("0123456789abcdef", mode)); },
                             ErrorKind::kFile, "others"));
  }
}

// As systemd hands over what a service is to keep secret: a file of root's, and an access control
// list that names the service's user.
TEST_F(AuthKeyTest, MayBeGivenToOneUserByAnAccessControlList) {
  struct Entry {
    std::uint16_t tag, rights;
    std::uint32_t id;
  };
  const auto try_list = [this](std::uint32_t user, std::uint16_t group_rights) {
    const auto path = file("0123456789abcdef");
    ByteVector list;
    append_number<std::uint32_t>(list, 2);
    for (const Entry& entry : {Entry{1, 6, ~0U}, Entry{2, 4, user}, Entry{4, group_rights, ~0U},
                               Entry{16, 4, ~0U}, Entry{32, 0, ~0U}}) {
      append_number<std::uint16_t>(list, entry.tag);
      append_number<std::uint16_t>(list, entry.rights);
      append_number<std::uint32_t>(list, entry.id);
    }
    if (::setxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0) {
      return std::string("none");
    }
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 040u);
    try {
      read_auth_key(path);
      return std::string("taken");
    } catch (const Error&) {
      return std::string("refused");
    }
  };
  const std::string ours = try_list(::geteuid(), 0);
  if (ours == "none") GTEST_SKIP() << "the folder for temporary files has no access control lists";
  EXPECT_EQ(ours, "taken");
  EXPECT_EQ(try_list(::geteuid() + 1, 0), "refused");
  EXPECT_EQ(try_list(::geteuid(), 4), "refused");
}

TEST_F(AuthKeyTest, MustBeLongEnoughAndNotTooLong) {
  EXPECT_TRUE(throws_error([&] { read_auth_key(file("0123456789abcde\n")); }, ErrorKind::kFormat,
                           "15 bytes"));
  EXPECT_TRUE(throws_error([&] { read_auth_key(file("")); }, ErrorKind::kFormat, "0 bytes"));
  EXPECT_TRUE(throws_error([&] { read_auth_key(file(std::string(4097, 'k'))); }, ErrorKind::kFormat,
                           "4096"));
}

TEST_F(AuthKeyTest, MustBeAFile) {
  EXPECT_TRUE(throws_error([&] { read_auth_key(folder_ / "none"); }, ErrorKind::kFile, "none"));
  EXPECT_TRUE(throws_error([&] { read_auth_key(folder_.path()); }, ErrorKind::kFile, "regular"));
}

}  // namespace
}  // namespace run_model::rpc
