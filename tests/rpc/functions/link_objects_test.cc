#include "rpc/functions/link_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>

#include <run_model/error.h>
#include "tests/artifacts/formats/tar_file.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

// The environment of one test, put back at its end.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// Stands in for a compiler: writes its arguments to the file after -o, or fails on request.
constexpr char kCompiler[] = R"(#!/bin/sh
if [ -n "$FAKE_COMPILER_FAILS" ]; then echo "undefined reference to nothing" >&2; exit 3; fi
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
cat "$@" > "$out"
)";

class LinkObjectsTest : public testing::Test {
 protected:
  LinkObjectsTest() {
    compiler_ = folder_.write("bin/c++", kCompiler);
    std::filesystem::permissions(compiler_, std::filesystem::perms::owner_all);
    // The stand-in needs the programs of the system, which have their own compilers after it.
    path_ = (folder_ / "bin").string() + ":" + ::getenv("PATH");
  }

  std::filesystem::path output() const { return folder_ / "net.tar.so"; }

  TemporaryFolder folder_;
  std::filesystem::path compiler_;
  std::string path_;
};

TEST_F(LinkObjectsTest, LinksTheMembersOfAnArchiveInOrder) {
  const Variable path("PATH", path_.c_str());
  const Variable cxx("CXX", nullptr);
  // A name that would be a flag, or would need quotes in a shell, is a name like any other.
  const auto tar = folder_.write(
      "net.tar", TarFile().add("-shared $(touch x).o", "first ").add("b/lib0.o", "second").bytes());
  EXPECT_EQ(link_objects(tar, output()), output());
  EXPECT_EQ(TemporaryFolder::read(output()), "first second");
  // Nothing else is left.
  EXPECT_THAT(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 3);
}

TEST_F(LinkObjectsTest, LinksASingleObject) {
  const Variable path("PATH", path_.c_str());
  const Variable cxx("CXX", nullptr);
  const auto object = folder_.write("net.o", "object");
  link_objects(object, output());
  EXPECT_EQ(TemporaryFolder::read(output()), "object");
}

TEST_F(LinkObjectsTest, WithoutACompilerItSaysWhatToDoOnTheHost) {
  const Variable path("PATH", folder_.path().c_str());
  const Variable cxx("CXX", nullptr);
  const auto tar = folder_.write("net.tar", TarFile().add("lib0.o", "x").bytes());
  EXPECT_TRUE(throws_error([&] { link_objects(tar, output()); }, ErrorKind::kIncompatible,
                           "no compiler to link them with; link on the host"));
}

TEST_F(LinkObjectsTest, TheCompilersWordsAreInTheError) {
  const Variable path("PATH", path_.c_str());
  const Variable cxx("CXX", compiler_.c_str());
  const Variable fails("FAKE_COMPILER_FAILS", "1");
  const auto tar = folder_.write("net.tar", TarFile().add("lib0.o", "x").bytes());
  EXPECT_TRUE(throws_error([&] { link_objects(tar, output()); }, ErrorKind::kMismatch,
                           "(exit code 3): 'undefined reference to nothing"));
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(LinkObjectsTest, RefusesArchivesOfAnythingElse) {
  const Variable path("PATH", path_.c_str());
  const auto devices =
      folder_.write("a.tar", TarFile().add("lib0.o", "x").add("devc.cl", "x").bytes());
  EXPECT_TRUE(
      throws_error([&] { link_objects(devices, output()); }, ErrorKind::kFormat, "'devc.cl'"));
  const auto outside = folder_.write("b.tar", TarFile().add("../lib0.o", "x").bytes());
  EXPECT_TRUE(
      throws_error([&] { link_objects(outside, output()); }, ErrorKind::kFormat, "../lib0.o"));
  const auto empty = folder_.write("c.tar", TarFile().bytes());
  EXPECT_TRUE(throws_error([&] { link_objects(empty, output()); }, ErrorKind::kFormat, "empty"));
  const auto damaged = folder_.write("d.tar", std::string(700, 'x'));
  EXPECT_THROW(link_objects(damaged, output()), Error);
}

}  // namespace
}  // namespace run_model::rpc
