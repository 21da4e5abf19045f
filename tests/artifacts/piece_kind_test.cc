#include "artifacts/piece_kind.h"

#include <gtest/gtest.h>

#include "tests/artifacts/test_artifact.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

TEST(PieceKindTest, AcceptsEachPieceByItsContent) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_piece_kind(folder.write("a", library_bytes()), PieceKind::kLibrary));
  EXPECT_NO_THROW(check_piece_kind(folder.write("b", " \n{}"), PieceKind::kGraph));
  EXPECT_NO_THROW(check_piece_kind(folder.write("c", kParamsBytes), PieceKind::kParams));
}

TEST(PieceKindTest, SaysThatPiecesWereSwapped) {
  const TemporaryFolder folder;
  folder.write("m.json", kParamsBytes);
  EXPECT_TRUE(throws_error([&] { check_piece_kind(folder / "m.json", PieceKind::kGraph); },
                           ErrorKind::kFormat,
                           "m.json' is TVM parameters (.params), but a graph in JSON was expected "
                           "there; the artifact's files were probably swapped"));
  folder.write("m.params", kGraphText);
  EXPECT_TRUE(throws_error([&] { check_piece_kind(folder / "m.params", PieceKind::kParams); },
                           ErrorKind::kFormat, "m.params' is JSON text, but a .params file was"));
  EXPECT_TRUE(throws_error([&] { check_piece_kind(folder / "m.params", PieceKind::kLibrary); },
                           ErrorKind::kFormat, "but a compiled library (.so) was expected"));
}

TEST(PieceKindTest, SaysThatFilesAreDamaged) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_error([&] { check_piece_kind(folder.write("m", ""), PieceKind::kGraph); },
                           ErrorKind::kFormat,
                           "is empty, but a graph in JSON was expected there; "
                           "it is damaged"));
  EXPECT_TRUE(throws_error(
      [&] { check_piece_kind(folder.write("m", kParamsBytes.substr(0, 7)), PieceKind::kParams); },
      ErrorKind::kFormat, "it is damaged"));
}

TEST(PieceKindTest, RecognisesTarArchives) {
  const TemporaryFolder folder;
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_TRUE(is_tar_archive(folder.write("m.tar", tar)));
  EXPECT_FALSE(is_tar_archive(folder.write("n.tar", library_bytes())));
  EXPECT_FALSE(is_tar_archive(folder.write("o.tar", "")));
}

}  // namespace
}  // namespace run_model
