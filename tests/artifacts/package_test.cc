#include <run_model/package.h>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artifacts/checksum.h"
#include "tests/artifacts/test_artifact.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class PackageTest : public ::testing::Test {
 protected:
  PackageTest() { write_triple(folder_, "net/native/model"); }

  Package open(bool verify = true, const std::string& target = "") const {
    return open_package({"net", folder_.path(), target, verify});
  }

  std::filesystem::path file(const std::string& name) const {
    return folder_ / ("net/native/" + name);
  }

  void write_metadata(const std::string& model) const {
    nlohmann::json metadata{{"schema_version", 1}, {"model", model}};
    metadata["target"] = {{"name", "native"}, {"tvm", "llvm"}, {"machine", "x86_64"}};
    for (const char* name : {"model.so", "model.json", "model.params"}) {
      char digest[17];
      std::snprintf(digest, sizeof digest, "%016llx",
                    static_cast<unsigned long long>(file_xxh3_64(file(name))));
      metadata["files"][name] = {{"bytes", std::filesystem::file_size(file(name))},
                                 {"xxh3_64", digest}};
    }
    folder_.write("net/native/metadata.json", metadata.dump());
  }

  TemporaryFolder folder_;
};

TEST_F(PackageTest, OpensWithoutMetadata) {
  const Package package = open();
  EXPECT_EQ(package.model, "net");
  EXPECT_EQ(package.target, "native");
  EXPECT_EQ(package.files.library, file("model.so"));
  EXPECT_EQ(package.files.graph, file("model.json"));
  EXPECT_EQ(package.files.params, file("model.params"));
  EXPECT_FALSE(package.metadata.has_value());
}

TEST_F(PackageTest, OpensWithMetadata) {
  write_metadata("net");
  const Package package = open();
  ASSERT_TRUE(package.metadata.has_value());
  EXPECT_EQ(package.metadata->target, "llvm");
  EXPECT_EQ(package.metadata_path, file("metadata.json"));
}

TEST_F(PackageTest, RefusesAMissingFileAlsoWhereNothingIsVerified) {
  write_metadata("net");
  std::filesystem::remove(file("model.params"));
  for (const bool verify : {true, false}) {
    EXPECT_TRUE(throws_error([&] { open(verify); }, ErrorKind::kFile,
                             "model.params' is missing, although"));
  }
}

TEST_F(PackageTest, RefusesEveryFileThatWasChangedSince) {
  write_metadata("net");
  for (const char* name : {"model.so", "model.json", "model.params"}) {
    const std::string content = TemporaryFolder::read(file(name));
    std::string changed = content;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    folder_.write("net/native/" + std::string(name), changed);
    EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kFormat, std::string(name) + "' has the"));
    EXPECT_NO_THROW(open(false));
    folder_.write("net/native/" + std::string(name), content + " ");
    EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kFormat, "bytes, but"));
    folder_.write("net/native/" + std::string(name), content);
  }
  EXPECT_NO_THROW(open());
}

TEST_F(PackageTest, RefusesSwappedFilesBeforeTheirChecksums) {
  write_metadata("net");
  std::filesystem::rename(file("model.json"), file("x"));
  std::filesystem::rename(file("model.params"), file("model.json"));
  std::filesystem::rename(file("x"), file("model.params"));
  EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kFormat, "probably swapped"));
  EXPECT_TRUE(throws_error([&] { open(false); }, ErrorKind::kFormat, "probably swapped"));
}

TEST_F(PackageTest, RefusesTheMetadataOfAnotherModel) {
  write_metadata("another");
  EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kMismatch, "this is the model 'another'"));
}

TEST_F(PackageTest, RefusesAFileThatMetadataListsAndIsMissing) {
  write_metadata("net");
  std::filesystem::remove(file("model.params"));
  EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kFile, "model.params"));
}

TEST_F(PackageTest, TargetOfALibraryComesFromItsMetadata) {
  write_metadata("net");
  const Package package = open_package({"net", file("model.so"), "native", true});
  EXPECT_EQ(package.target, "native");
  EXPECT_TRUE(throws_error([&] { open_package({"net", file("model.so"), "riscv64", true}); },
                           ErrorKind::kMismatch, "but --target asks for 'riscv64'"));
}

TEST_F(PackageTest, SharedMetadataCountsOnlyForTheLibrariesThatItLists) {
  folder_.write("net/native/single.so", library_bytes());
  write_metadata("net");
  EXPECT_FALSE(open_package({"net", file("single.so"), "", true}).metadata.has_value());
  folder_.write("net/native/metadata.json", R"({"schema_version": 1, "model": "net",
      "files": {"single.so": {"bytes": 1}, "model.params": {"bytes": 1}}})");
  EXPECT_TRUE(throws_error([&] { open_package({"net", file("single.so"), "", true}); },
                           ErrorKind::kFormat, "lists 1"));
  EXPECT_TRUE(open_package({"net", file("single.so"), "", false}).metadata.has_value());
  folder_.write("net/native/metadata.json", "of some other program");
  EXPECT_NO_THROW(open_package({"net", file("single.so"), "", true}));
}

TEST_F(PackageTest, TheNameMayBeLeftToTheArtifact) {
  EXPECT_EQ(open_package({"", folder_ / "net", "", true}).model, "model");
  write_metadata("some-net");
  EXPECT_EQ(open_package({"", folder_ / "net", "", true}).model, "some-net");
}

TEST_F(PackageTest, EmptyFilesAreRefused) {
  folder_.write("net/native/model.params", "");
  EXPECT_TRUE(throws_error([&] { open(); }, ErrorKind::kFormat, "model.params' is empty"));
}

TEST_F(PackageTest, TasksAreTheFilesElseTheArtifacts) {
  EXPECT_TRUE(choose_tasks({}, open()).empty());
  Package package = open();
  package.metadata = Metadata();
  package.metadata->tasks = {{ClassificationTask(), {"own"}, std::nullopt},
                             {DetectionTask(), {}, std::nullopt}};
  folder_.write("labels.txt", "cat\ndog\n");
  folder_.write("task.json", R"({"kind": "embedding", "output": 0})");
  TaskRequest request{{}, 0.75, folder_ / "labels.txt"};
  std::vector<Task> tasks = choose_tasks(request, package);
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].labels, std::vector<std::string>{"own"});
  EXPECT_EQ(tasks[1].labels, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(std::get<DetectionTask>(tasks[1].what).score_threshold, 0.75);
  request.tasks = folder_ / "task.json";
  tasks = choose_tasks(request, package);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].kind(), TaskKind::kEmbedding);
  EXPECT_TRUE(tasks[0].labels.empty());  // of an embedding, which has no classes
  request.tasks = folder_ / "other.json";
  EXPECT_TRUE(
      throws_error([&] { choose_tasks(request, package); }, ErrorKind::kFile, "other.json"));
}

}  // namespace
}  // namespace run_model
