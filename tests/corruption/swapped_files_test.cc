// Files given in each other's place, and things that are no files of any use.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include <run_model/graph_executor.h>
#include <run_model/labels.h>
#include <run_model/metadata.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/corruption/small_model.h"
#include "tests/corruption/sweep.h"

namespace run_model::corruption {
namespace {

namespace fs = std::filesystem;

class SwappedFiles : public testing::Test {
 protected:
  SwappedFiles() {
    good_["library"] = folder_.write("good.so", small_library());
    good_["graph"] = folder_.write("good.json", small_graph().dump());
    good_["params"] = folder_.write("good.params", small_params());
    good_["metadata"] = folder_.write("metadata.json", small_metadata(false).dump());
    good_["labels"] = folder_.write("labels.txt", "tabby\ntiger cat\n");
    Tensor tensor = Tensor::empty({4}, parse_dtype("float32"));
    std::fill_n(tensor.elements<float>().data(), 4, 1.0f);
    good_["array"] = folder_ / "x.npy";
    write_npy(good_["array"], tensor);
    good_["archive"] = folder_ / "x.npz";
    write_npz(good_["archive"], std::vector<NamedTensor>{{"x", tensor}});
  }

  // Reads `path` as what `role` says, as the program would.
  void read_as(const std::string& role, const fs::path& path) const {
    ModelFiles files{good_.at("library"), good_.at("graph"), good_.at("params")};
    if (role == "library") files.library = path;
    if (role == "graph") files.graph = path;
    if (role == "params") files.params = path;
    if (role == "library" || role == "graph" || role == "params") GraphExecutor model(files);
    if (role == "metadata") read_metadata(path);
    if (role == "labels") read_labels(path);
    if (role == "array") read_npy(path);
    if (role == "archive") read_npz(path);
  }

  TemporaryFolder folder_;
  std::map<std::string, fs::path> good_;  // by role
};

TEST_F(SwappedFiles, EveryKindInPlaceOfEveryOther) {
  for (const auto& [role, expected] : good_) {
    EXPECT_NO_THROW(read_as(role, expected)) << role;
    for (const auto& [other, path] : good_) {
      if (other == role) continue;
      Sweep sweep({ErrorKind::kFormat}, path.filename());
      EXPECT_FALSE(sweep.accepts(other + " as " + role, [&] { read_as(role, path); }))
          << other << " as " << role;
    }
  }
}

TEST_F(SwappedFiles, NoFile) {
  for (const auto& [role, unused] : good_) {
    SCOPED_TRACE(role);
    {
      Sweep missing({ErrorKind::kFile}, "not_there");
      EXPECT_FALSE(missing.accepts("missing", [&] { read_as(role, folder_ / "not_there"); }));
    }
    {
      fs::create_directory(folder_ / "a_folder");
      Sweep folder({ErrorKind::kFile, ErrorKind::kFormat}, "a_folder");
      EXPECT_FALSE(folder.accepts("a folder", [&] { read_as(role, folder_ / "a_folder"); }));
      fs::remove(folder_ / "a_folder");
    }
    {
      Sweep empty({ErrorKind::kFormat}, "empty_file");
      fs::path path = folder_.write("empty_file", "");
      EXPECT_FALSE(empty.accepts("empty", [&] { read_as(role, path); }));
    }
    if (geteuid() != 0) {  // root reads everything
      fs::path path = folder_.write("secret_file", "x");
      chmod(path.c_str(), 0);
      Sweep unreadable({ErrorKind::kFile}, "secret_file");
      EXPECT_FALSE(unreadable.accepts("unreadable", [&] { read_as(role, path); }));
    }
  }
}

// A sparse file of 64 GiB, of which only the first bytes are of any use: never read whole.
TEST_F(SwappedFiles, AbsurdlyLarge) {
  for (const auto& [role, path] : good_) {
    SCOPED_TRACE(role);
    fs::path large = folder_ / "large_file";
    fs::copy_file(path, large, fs::copy_options::overwrite_existing);
    fs::resize_file(large, std::uintmax_t{64} << 30);
    if (role == "library") {
      // What comes after its tables means nothing in an ELF file.
      EXPECT_NO_THROW(read_as(role, large));
      continue;
    }
    Sweep sweep({ErrorKind::kFormat}, "large_file", std::size_t{64} << 20);
    EXPECT_FALSE(sweep.accepts("64 GiB", [&] { read_as(role, large); }));
  }
}

}  // namespace
}  // namespace run_model::corruption
