#include "artifacts/cpu_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/artifacts/test_artifact.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

Package package_with(std::optional<std::vector<std::string>> features) {
  Package package;
  package.target = "x86_64_v3";
  package.files.library = "net/x86_64_v3/model.so";
  package.metadata = Metadata{};
  package.metadata->features = std::move(features);
  return package;
}

TEST(CpuCheckTest, NamesWhatIsMissing) {
  const CpuFeatures cpu{{"avx", true}, {"avx2", false}, {"fma", false}};
  EXPECT_THAT([&] { check_cpu(package_with({{"avx", "avx2", "fma"}}), cpu); },
              ThrowsError(ErrorKind::kIncompatible,
                          "'net/x86_64_v3/model.so' was compiled for the target 'x86_64_v3', which "
                          "needs what this CPU lacks: avx2, fma"));
  EXPECT_THAT([&] { check_cpu(package_with({{"fma"}}), cpu); },
              ThrowsError(ErrorKind::kIncompatible, "scripts/compile_model"));
}

TEST(CpuCheckTest, LetsThroughWhatFitsOrSaysNothing) {
  const CpuFeatures cpu{{"avx", true}, {"avx2", false}};
  EXPECT_NO_THROW(check_cpu(package_with({{"avx", "from-the-future"}}), cpu));
  EXPECT_NO_THROW(check_cpu(package_with({{}}), cpu));
  EXPECT_NO_THROW(check_cpu(package_with(std::nullopt), cpu));
  Package bare = package_with({{"avx2"}});
  bare.metadata.reset();
  EXPECT_NO_THROW(check_cpu(bare, cpu));
}

TEST(CpuCheckTest, KeepsPackagesFromOpening) {
  const auto absent = std::find_if(this_cpu().begin(), this_cpu().end(),
                                   [](const auto& feature) { return !feature.second; });
  if (absent == this_cpu().end()) GTEST_SKIP() << "this CPU lacks nothing that is known here";
  const TemporaryFolder folder;
  write_triple(folder, "net/native/model");
  folder.write("net/native/metadata.json",
               R"({"schema_version": 1, "target": {"features": [")" + absent->first + "\"]}}");
  PackageRequest request{.model = "net", .artifacts = folder.path(), .target = ""};
  EXPECT_THAT([&] { open_package(request); },
              ThrowsError(ErrorKind::kIncompatible, "lacks: " + absent->first));
  request.for_this_cpu = false;
  EXPECT_NO_THROW(open_package(request));
}

}  // namespace
}  // namespace run_model
