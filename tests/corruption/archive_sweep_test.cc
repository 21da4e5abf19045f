// Tar archives and gzip files.
#include <gtest/gtest.h>

#include "artifacts/archive_package.h"
#include "artifacts/formats/deflate.h"
#include "artifacts/formats/tar.h"
#include "base/text.h"
#include "tests/artifacts/formats/tar_file.h"
#include "tests/corruption/damage.h"
#include "tests/corruption/sweep.h"
#include "tests/temporary_folder.h"

namespace run_model::corruption {
namespace {

// Names and sizes stand behind a checksum. What files hold does not, nor whether zeros at the end
// are missing; the package's own readers look at that.
TEST(TarSweep, EveryByte) {
  const std::string content = TarFile()
                                  .add("L", std::string(200, 'n'), 'L')
                                  .add("short", "through a long name")
                                  .add("x", "18 path=longer.so\n", 'x')
                                  .add("mod.so", "library")
                                  .bytes();
  Sweep sweep({ErrorKind::kFormat}, "a.tar");
  for_each_damage(content, [&](const std::string& how, const std::string& bytes) {
    sweep.accepts(how, [&] {
      const TarReader reader(std::as_bytes(std::span(bytes)), "'a.tar'");
      std::size_t total = 0;
      for (const TarEntry& entry : reader.entries()) {
        total += entry.bytes.size();
        EXPECT_FALSE(entry.name.empty()) << how;
        EXPECT_NE(entry.name.front(), '/') << how;
        EXPECT_EQ(("/" + entry.name + "/").find("/../"), std::string::npos) << how;
      }
      EXPECT_LE(total, bytes.size()) << how;
      EXPECT_LE(reader.entries().size(), 2U) << how;
    });
  });
}

// A damaged package is refused or still has its files; nothing of the kind of a half read one.
TEST(PackageArchiveSweep, EveryByte) {
  TemporaryFolder folder;
  const std::string content =
      TarFile()
          .add("./metadata.json", R"({"version": 5, "executors": ["graph"]})")
          .add("executor-config/graph/graph.json", "{}")
          .add("parameters/default.params", "parameters")
          .add("codegen/host/lib/net.so", "library")
          .bytes();
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "a.tar");
  for_each_damage(content,
                  [&](const std::string& how, const std::string& bytes) {
                    replace_file(folder / "a.tar", bytes);
                    sweep.accepts(how, [&] {
                      const UnpackedArchive archive = unpack_archive(folder / "a.tar");
                      EXPECT_EQ(TemporaryFolder::read(archive.files.library).size(), 7U) << how;
                      EXPECT_EQ(TemporaryFolder::read(archive.files.graph).size(), 2U) << how;
                    });
                  },
                  {.stride = 7});
}

// gzip has a checksum of the content: what is accepted is the content.
TEST(GzipSweep, EveryByte) {
  const std::string whole =
      TemporaryFolder::read(RUN_MODEL_SOURCE_DIR "/tests/artifacts/data/gnu.tar.gz");
  const auto original = gunzip(std::as_bytes(std::span(whole)), 1 << 20, "'a.gz'");
  Sweep sweep({ErrorKind::kFormat}, "a.gz");
  for_each_damage(whole, [&](const std::string& how, const std::string& bytes) {
    sweep.accepts(how, [&] {
      const auto got = gunzip(std::as_bytes(std::span(bytes)), 1 << 20, "'a.gz'");
      // Twice, where the damage was the whole file put behind itself.
      EXPECT_TRUE(as_text(got).starts_with(as_text(original))) << how;
      EXPECT_EQ(got.size() % original.size(), 0U) << how;
    });
  });
}

}  // namespace
}  // namespace run_model::corruption
