#include "artifacts/archive_package.h"

#include <gmock/gmock.h>

#include <run_model/package.h>
#include "tests/artifacts/formats/tar_file.h"
#include "tests/artifacts/test_artifact.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class ArchivePackageTest : public testing::Test {
 protected:
  UnpackedArchive unpack(const TarFile& tar) const {
    return unpack_archive(folder_.write("net.tar", tar.bytes()));
  }

  void expect_pieces(const UnpackedArchive& archive) const {
    EXPECT_EQ(TemporaryFolder::read(archive.files.library), library_bytes());
    EXPECT_EQ(TemporaryFolder::read(archive.files.graph), kGraphText);
    EXPECT_EQ(TemporaryFolder::read(archive.files.params), kParamsBytes);
  }

  // With the code that archives of TVM hold.
  static TarFile library_format(const std::string& metadata) {
    return TarFile()
        .add("./metadata.json", metadata)
        .add("./codegen/host/lib/default_lib0.o", "object")
        .add("./executor-config/graph/default.graph", std::string(kGraphText))
        .add("./parameters/default.params", kParamsBytes);
  }

  TemporaryFolder folder_;
};

constexpr char kVersion7[] = R"({"version": 7, "modules": {"default": {"executors": ["graph"]}}})";

TEST_F(ArchivePackageTest, UnpacksPackagesOfTvmc) {
  for (const std::string stem : {"mod", "model", "./mod"}) {
    expect_pieces(unpack(TarFile()
                             .add(stem + ".so", library_bytes())
                             .add(stem + ".json", std::string(kGraphText))
                             .add(stem + ".params", kParamsBytes)));
  }
}

TEST_F(ArchivePackageTest, ALibraryAloneIsComplete) {
  const UnpackedArchive archive = unpack(TarFile().add("mod.so", library_bytes()));
  EXPECT_EQ(TemporaryFolder::read(archive.files.library), library_bytes());
  EXPECT_EQ(archive.files.graph, "");
  EXPECT_EQ(archive.files.params, "");
}

TEST_F(ArchivePackageTest, FilesVanishWithThePackage) {
  std::filesystem::path library;
  {
    PackageRequest request;
    request.artifacts = folder_.write(
        "net.tar",
        TarFile().add("mod.so", library_bytes()).add("mod.json", std::string(kGraphText)).bytes());
    const Package package = open_package(request);
    EXPECT_EQ(package.model, "net");
    library = package.files.library;
    EXPECT_TRUE(std::filesystem::exists(library));
  }
  EXPECT_FALSE(std::filesystem::exists(library));
}

TEST_F(ArchivePackageTest, FilesGoByTheirNamesInTheArchive) {
  PackageRequest request;
  request.artifacts = folder_.write("net.tar", TarFile()
                                                   .add("mod.so", "\x7f"
                                                                  "no ELF")
                                                   .bytes());
  EXPECT_TRUE(
      throws_error([&] { open_package(request); }, ErrorKind::kFormat, "net.tar/mod.so' is"));
}

TEST_F(ArchivePackageTest, MetadataBesideAnArchiveIsItsOwn) {
  PackageRequest request;
  request.artifacts = folder_.write("net.tar", TarFile().add("mod.so", library_bytes()).bytes());
  folder_.write("net.metadata.json",
                R"({"schema_version": 1, "model": "net", "files": {"net.tar": {"bytes": 1}}})");
  EXPECT_TRUE(throws_error([&] { open_package(request); }, ErrorKind::kFormat,
                           "net.metadata.json' lists 1"));
  request.verify = false;
  EXPECT_TRUE(open_package(request).metadata.has_value());
}

TEST_F(ArchivePackageTest, RunsLibraryFormatThatHoldsALibrary) {
  for (const char* metadata :
       {kVersion7, R"({"version": 5, "executors": ["graph"], "model_name": "default"})",
        R"({"version": 1, "runtimes": ["graph"]})"}) {
    SCOPED_TRACE(metadata);
    expect_pieces(unpack(library_format(metadata).add("codegen/host/lib/net.so", library_bytes())));
  }
  expect_pieces(unpack(TarFile()
                           .add("metadata.json", R"({"version": 1, "runtimes": ["graph"]})")
                           .add("runtime-config/graph/graph.json", std::string(kGraphText))
                           .add("parameters/default.params", kParamsBytes)
                           .add("codegen/host/lib/net.so", library_bytes())));
}

TEST_F(ArchivePackageTest, SaysHowToLinkLibraryFormat) {
  EXPECT_TRUE(throws_error([&] { unpack(library_format(kVersion7)); }, ErrorKind::kIncompatible,
                           "scripts/link_mlf"));
  EXPECT_TRUE(throws_error([&] { unpack(TarFile().add("mod.tar", "").add("mod.json", "{}")); },
                           ErrorKind::kIncompatible, "scripts/link_mlf"));
}

TEST_F(ArchivePackageTest, SaysHowToLinkWhatRelaxExports) {
  EXPECT_TRUE(throws_error([&] { unpack(TarFile().add("devc.o", "").add("lib0.o", "")); },
                           ErrorKind::kIncompatible, "g++ -shared -o model.so *.o"));
}

TEST_F(ArchivePackageTest, RefusesOtherExecutors) {
  EXPECT_TRUE(
      throws_error([&] { unpack(library_format(R"({"version": 6, "executors": ["aot"]})")); },
                   ErrorKind::kIncompatible, "for the executor 'aot'"));
  EXPECT_TRUE(
      throws_error([&] { unpack(TarFile().add("lib.so", library_bytes()).add("lib.ro", "")); },
                   ErrorKind::kIncompatible, "Relay virtual machine"));
}

TEST_F(ArchivePackageTest, RefusesOtherLibraryFormats) {
  EXPECT_TRUE(throws_error([&] { unpack(library_format(R"({"version": 8})")); },
                           ErrorKind::kIncompatible, "in version 8"));
  EXPECT_TRUE(throws_error(
      [&] {
        unpack(library_format(
            R"({"version": 7, "modules": {"a": {"executors": ["graph"]}, "b": {}}})"));
      },
      ErrorKind::kIncompatible, "holds 2 models"));
  EXPECT_TRUE(throws_error([&] { unpack(library_format("{}")); }, ErrorKind::kFormat,
                           "not that of the Model Library Format"));
  EXPECT_TRUE(
      throws_error([&] { unpack(library_format("{")); }, ErrorKind::kFormat, "metadata.json"));
  EXPECT_TRUE(throws_error([&] { unpack(TarFile().add("metadata.json", kVersion7)); },
                           ErrorKind::kFormat, "without a graph"));
  EXPECT_TRUE(throws_error(
      [&] {
        unpack(library_format(kVersion7)
                   .add("codegen/host/lib/a.so", library_bytes())
                   .add("codegen/host/lib/b.so", library_bytes()));
      },
      ErrorKind::kIncompatible, "more than one shared library"));
}

TEST_F(ArchivePackageTest, SaysWhatAnotherArchiveHolds) {
  EXPECT_TRUE(throws_error([&] { unpack(TarFile().add("readme.txt", "hello")); },
                           ErrorKind::kFormat, "it holds 'readme.txt'"));
  EXPECT_TRUE(throws_error([&] { unpack(TarFile()); }, ErrorKind::kFormat, "it holds no files"));
  EXPECT_TRUE(throws_error([&] { unpack_archive(folder_ / "none.tar"); }, ErrorKind::kFile,
                           "does not exist"));
}

}  // namespace
}  // namespace run_model
