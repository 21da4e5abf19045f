#include "rpc/server/sessions/work_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;

TEST(WorkFolderTest, IsItsOwnersAloneAndGoneAtTheEnd) {
  TemporaryFolder place;
  std::optional<WorkFolder> folder(place.path());
  const fs::path path = folder->path();
  const fs::path session = folder->make_session_folder(7);
  for (const fs::path& made : {path, session}) {
    struct stat status{};
    ASSERT_EQ(::stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
  }
  folder.reset();
  EXPECT_TRUE(fs::is_empty(place.path()));
}

TEST(WorkFolderTest, RemovesWhatKilledServersHaveLeft) {
  TemporaryFolder place;
  place.write("run_model_rpc.abc123/4/net.so", "x");
  place.write("other/4/net.so", "x");
  place.write("run_model_rpc.file", "x");
  const WorkFolder folder(place.path());
  EXPECT_FALSE(fs::exists(place / "run_model_rpc.abc123"));
  EXPECT_TRUE(fs::exists(place / "other/4/net.so"));
  EXPECT_TRUE(fs::exists(place / "run_model_rpc.file"));
}

TEST(WorkFolderTest, LeavesWhatAnotherServerUses) {
  TemporaryFolder place;
  const WorkFolder first(place.path());
  const WorkFolder second(place.path());
  EXPECT_TRUE(fs::exists(first.path()));
  EXPECT_NE(first.path(), second.path());
}

TEST(WorkFolderTest, SaysWhyItCannotBeLockedAndLeavesNothing) {
  TemporaryFolder place;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(throws_error([&] { const WorkFolder folder(place.path()); }, ErrorKind::kFile,
                           "Too many open files"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(fs::is_empty(place.path()));
}

TEST(WorkFolderTest, DoesNotFollowLinks) {
  TemporaryFolder place;
  TemporaryFolder elsewhere;
  elsewhere.write("kept", "x");
  fs::create_symlink(elsewhere.path(), place / "run_model_rpc.linked");
  const WorkFolder folder(place.path());
  const fs::path session = folder.make_session_folder(1);
  fs::create_symlink(elsewhere.path(), session / "link");
  EXPECT_TRUE(WorkFolder::remove(session));
  EXPECT_FALSE(fs::exists(session));
  EXPECT_TRUE(fs::exists(elsewhere / "kept"));
}

TEST(WorkFolderTest, SaysWhereNoneCanBeMade) {
  EXPECT_TRUE(
      throws_error([] { WorkFolder("/no/such/place"); }, ErrorKind::kFile, "/no/such/place"));
}

}  // namespace
}  // namespace run_model::rpc
