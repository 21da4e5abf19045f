#include "artifacts/package_finder.h"

#include <gtest/gtest.h>

#include "tests/artifacts/test_artifact.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class PackageFinderTest : public ::testing::Test {
 protected:
  PackageLocation find(const std::string& where = "", const std::string& target = "") const {
    return find_package("net", where.empty() ? folder_.path() : folder_ / where, target);
  }

  void expect_triple(const PackageLocation& location, const std::string& stem) const {
    EXPECT_EQ(location.library, folder_ / (stem + ".so"));
    EXPECT_EQ(location.graph, folder_ / (stem + ".json"));
    EXPECT_EQ(location.params, folder_ / (stem + ".params"));
  }

  TemporaryFolder folder_;
};

TEST_F(PackageFinderTest, FindsTargetFolders) {
  write_triple(folder_, "net/native/model");
  folder_.write("net/native/metadata.json", "{}");
  const PackageLocation location = find();
  expect_triple(location, "net/native/model");
  EXPECT_EQ(location.target, "native");
  EXPECT_EQ(location.metadata, folder_ / "net/native/metadata.json");
}

TEST_F(PackageFinderTest, FindsTheTargetThatIsAskedFor) {
  write_triple(folder_, "net/native/model");
  write_triple(folder_, "net/x86-64-v3/mod");
  expect_triple(find("", "x86-64-v3"), "net/x86-64-v3/mod");
  EXPECT_TRUE(
      throws_error([&] { find("", "riscv64"); }, ErrorKind::kFile, "has no target 'riscv64'"));
}

TEST_F(PackageFinderTest, TakesTargetsForTheDevice) {
  write_triple(folder_, "net/opencl/model");
  folder_.write("net/opencl/metadata.json", R"({"schema_version": 1, "device": "opencl"})");
  const auto find_for = [&](const char* device) {
    return find_package("net", folder_.path(), "", device).target;
  };
  EXPECT_EQ(find_for(""), "opencl");
  write_triple(folder_, "net/other/model");
  EXPECT_EQ(find_for(""), "other");
  EXPECT_EQ(find_for("cpu"), "other");
  EXPECT_EQ(find_for("opencl"), "opencl");
  EXPECT_TRUE(throws_error([&] { find_for("vulkan"); }, ErrorKind::kFile,
                           {"has no target for the device 'vulkan'", "opencl", "other"}));
}

TEST_F(PackageFinderTest, HiddenFoldersAreNoTargets) {
  write_triple(folder_, "net/.unfinished/model");
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "no artifact of 'net' was found"));
}

TEST_F(PackageFinderTest, FindsModelFoldersAndTheirTvmcNames) {
  write_triple(folder_, "net/mod");
  expect_triple(find(), "net/mod");
  expect_triple(find("net"), "net/mod");
  EXPECT_EQ(find().target, "");
}

TEST_F(PackageFinderTest, FindsTargetsBelowTheModelsOwnFolder) {
  write_triple(folder_, "net/native/model");
  expect_triple(find("net"), "net/native/model");
  expect_triple(find("net/"), "net//native/model");
  expect_triple(find("net/native"), "net/native/model");
}

TEST_F(PackageFinderTest, DoesNotTakeAnotherModelForATarget) {
  write_triple(folder_, "other/model");
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "no artifact of 'net'"));
}

TEST_F(PackageFinderTest, FindsFlatFiles) {
  write_triple(folder_, "net_tvm");
  folder_.write("net_tvm.metadata.json", "{}");
  const PackageLocation location = find();
  expect_triple(location, "net_tvm");
  EXPECT_EQ(location.metadata, folder_ / "net_tvm.metadata.json");
  expect_triple(find("net_tvm"), "net_tvm");
  expect_triple(find("net"), "net_tvm");
}

TEST_F(PackageFinderTest, FindsFlatFilesWithoutTheSuffix) {
  write_triple(folder_, "net");
  expect_triple(find(), "net");
}

TEST_F(PackageFinderTest, FoldersComeBeforeFlatFiles) {
  write_triple(folder_, "net_tvm");
  write_triple(folder_, "net/native/model");
  expect_triple(find(), "net/native/model");
}

TEST_F(PackageFinderTest, TakesLibrariesByTheirPath) {
  write_triple(folder_, "some/where");
  expect_triple(find("some/where.so"), "some/where");
  folder_.write("single.so", library_bytes());
  const PackageLocation single = find("single.so");
  EXPECT_EQ(single.library, folder_ / "single.so");
  EXPECT_EQ(single.graph, "");
  EXPECT_EQ(single.params, "");
}

TEST_F(PackageFinderTest, AFoldersMetadataMayBeAboutAnotherLibrary) {
  write_triple(folder_, "net/native/model");
  folder_.write("net/native/metadata.json", "{}");
  folder_.write("net/native/single.so", library_bytes());
  const PackageLocation location = find("net/native/single.so");
  EXPECT_EQ(location.metadata, folder_ / "net/native/metadata.json");
  EXPECT_TRUE(location.metadata_is_shared);
  EXPECT_FALSE(find().metadata_is_shared);
}

TEST_F(PackageFinderTest, FindsWhateverAFolderHolds) {
  write_triple(folder_, "net/native/model");
  EXPECT_EQ(find_package("", folder_ / "net", "").library, folder_ / "net/native/model.so");
  EXPECT_EQ(find_package("", folder_ / "net/native", "").target, "");
  EXPECT_TRUE(throws_error([&] { find_package("", folder_ / "other", ""); }, ErrorKind::kFile,
                           "/other' does not exist; looked for"));
}

TEST_F(PackageFinderTest, NamesTheModelsThatAreThere) {
  write_triple(folder_, "net/native/model");
  write_triple(folder_, "unpacked/mod");
  write_triple(folder_, "flat_tvm");
  write_triple(folder_, "other");
  folder_.write("empty/notes.txt", "");
  write_triple(folder_, "native/model");
  folder_.write("native/metadata.json", R"({"schema_version": 1, "model": "net"})");
  folder_.write("libz.so", library_bytes());
  EXPECT_TRUE(throws_error([&] { find_package("nett", folder_.path(), ""); }, ErrorKind::kFile,
                           "are there: 'flat', 'net', 'other', 'unpacked'"));
  write_triple(folder_, "zoo/first/native/model");
  write_triple(folder_, "zoo/second/native/model");
  EXPECT_TRUE(throws_error([&] { find_package("", folder_ / "zoo", ""); }, ErrorKind::kFile,
                           "are there: 'first', 'second'"));
  EXPECT_TRUE(throws_error([&] { find_package("net", folder_ / "empty", ""); }, ErrorKind::kFile,
                           "compile it with"));
  EXPECT_TRUE(throws_error([&] { find_package("net", folder_ / "none", ""); }, ErrorKind::kFile,
                           "compile it with"));
}

TEST_F(PackageFinderTest, NamesMissingPieces) {
  folder_.write("net/native/model.json", kGraphText);
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "model.so' is missing, although"));
  folder_.write("net/native/model.so", library_bytes());
  EXPECT_EQ(find().params, "");
  folder_.write("net_tvm.so", library_bytes());
  folder_.write("net_tvm.params", kParamsBytes);
  EXPECT_TRUE(throws_error([&] { find("net_tvm"); }, ErrorKind::kFile,
                           "net_tvm.json' is missing, although"));
}

TEST_F(PackageFinderTest, ListsWhereItLooked) {
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "net/<target>/model.so'"));
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "/net_tvm.so'"));
  EXPECT_TRUE(throws_error([&] { find("missing"); }, ErrorKind::kFile, "/missing.so'"));
}

TEST_F(PackageFinderTest, RefusesOtherFiles) {
  write_triple(folder_, "m");
  EXPECT_TRUE(throws_error([&] { find("m.json"); }, ErrorKind::kFormat,
                           "m.json' is JSON text, but a compiled library"));
}

class ArchiveFinderTest : public PackageFinderTest {
 protected:
  void write_archive(const std::string& path) const {
    std::string tar(512, '\0');
    tar.replace(257, 5, "ustar");
    folder_.write(path, tar);
  }
};

TEST_F(ArchiveFinderTest, TakesAnArchiveThatIsNamed) {
  write_triple(folder_, "m");
  write_archive("m.tar");
  const PackageLocation location = find("m.tar");
  EXPECT_EQ(location.archive, folder_ / "m.tar");
  EXPECT_EQ(location.library, "");
  EXPECT_EQ(location.graph, "");
  EXPECT_EQ(location.name(), "m");
}

TEST_F(ArchiveFinderTest, FindsArchivesWherePiecesWouldBe) {
  for (const std::string place : {"net.tar", "net/net.tar", "net/module.tar"}) {
    SCOPED_TRACE(place);
    write_archive(place);
    EXPECT_EQ(find().archive, folder_ / place);
    std::filesystem::remove(folder_ / place);
  }
  write_archive("other.tar");
  EXPECT_TRUE(throws_error([&] { find(); }, ErrorKind::kFile, "no artifact of 'net' was found"));
}

TEST_F(ArchiveFinderTest, PrefersThePieces) {
  write_archive("net.tar");
  write_triple(folder_, "net");
  EXPECT_EQ(find().archive, "");
  expect_triple(find(), "net");
}

TEST_F(ArchiveFinderTest, TakesMetadataBesideAnArchive) {
  write_archive("net.tar");
  folder_.write("net.metadata.json", "{}");
  EXPECT_EQ(find().metadata, folder_ / "net.metadata.json");
  EXPECT_FALSE(find().metadata_is_shared);
}

TEST_F(PackageFinderTest, FindsTheNamesOfTheTutorials) {
  folder_.write("net/deploy_lib.so", library_bytes());
  folder_.write("net/deploy_graph.json", kGraphText);
  folder_.write("net/deploy_param.params", kParamsBytes);
  const PackageLocation location = find();
  EXPECT_EQ(location.library, folder_ / "net/deploy_lib.so");
  EXPECT_EQ(location.graph, folder_ / "net/deploy_graph.json");
  EXPECT_EQ(location.params, folder_ / "net/deploy_param.params");
}

TEST_F(PackageFinderTest, SaysHowToBuildSource) {
  folder_.write("net/c/model.json", kGraphText);
  folder_.write("net/c/model.c", "int f(void);");
  EXPECT_TRUE(throws_error([&] { find("", "c"); }, ErrorKind::kFile, "run make in its folder"));
}

}  // namespace
}  // namespace run_model
