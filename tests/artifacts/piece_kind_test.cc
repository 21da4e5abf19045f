#include "artifacts/piece_kind.h"

#include <gtest/gtest.h>

#include "tests/artifacts/test_artifact.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

TEST(PieceKindTest, AcceptsEachPieceByItsContent) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_piece_kind(folder.write("a", library_bytes()), PieceKind::kLibrary));
  EXPECT_NO_THROW(check_piece_kind(folder.write("b", " \n{}"), PieceKind::kGraph));
  EXPECT_NO_THROW(check_piece_kind(folder.write("c", kParams), PieceKind::kParams));
}

TEST(PieceKindTest, SaysThatPiecesWereSwapped) {
  const TemporaryFolder folder;
  folder.write("m.json", kParams);
  EXPECT_THAT([&] { check_piece_kind(folder / "m.json", PieceKind::kGraph); },
              ThrowsError(ErrorKind::kFormat,
                          "m.json' is TVM parameters (.params), but a graph in JSON was expected "
                          "there; the artifact's files were probably swapped"));
  folder.write("m.params", kGraph);
  EXPECT_THAT([&] { check_piece_kind(folder / "m.params", PieceKind::kParams); },
              ThrowsError(ErrorKind::kFormat, "m.params' is JSON text, but TVM parameters"));
  EXPECT_THAT([&] { check_piece_kind(folder / "m.params", PieceKind::kLibrary); },
              ThrowsError(ErrorKind::kFormat, "but a compiled library (.so) was expected"));
}

TEST(PieceKindTest, SaysThatFilesAreDamaged) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { check_piece_kind(folder.write("m", ""), PieceKind::kGraph); },
              ThrowsError(ErrorKind::kFormat, "is empty, but a graph in JSON was expected there; "
                                              "it is damaged"));
  EXPECT_THAT(
      [&] { check_piece_kind(folder.write("m", kParams.substr(0, 7)), PieceKind::kParams); },
      ThrowsError(ErrorKind::kFormat, "it is damaged"));
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
