#include "artifacts/formats/tar.h"

#include <gmock/gmock.h>

#include <map>

#include "artifacts/formats/deflate.h"
#include "base/text.h"
#include "tests/artifacts/formats/tar_file.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using Files = std::map<std::string, std::string>;

std::string data_file(const std::string& name) {
  return TemporaryFolder::read(RUN_MODEL_SOURCE_DIR "/tests/artifacts/data/" + name);
}

Files files_in(const std::string& archive) {
  Files files;
  const TarReader reader(std::as_bytes(std::span(archive)), "'a.tar'");
  for (const TarEntry& entry : reader.entries()) files[entry.name] = as_text(entry.bytes);
  return files;
}

// As make_tar_files has them.
Files expected_files() {
  std::string block;
  for (int i = 0; i < 512; ++i) block += static_cast<char>(i % 256);
  return {{"mod.so", "\x7f"
                     "ELF and so on"},
          {"empty", ""},
          {"folder/block", block},
          {std::string(80, 'p') + "/" + std::string(80, 'n'), "through the prefix"},
          {std::string(90, 'd') + "/" + std::string(90, 'e') + "/" + std::string(120, 'f'),
           "through an extended header"}};
}

class WrittenBy : public testing::TestWithParam<const char*> {};

TEST_P(WrittenBy, HoldsAllFiles) { EXPECT_EQ(files_in(data_file(GetParam())), expected_files()); }

INSTANTIATE_TEST_SUITE_P(Tar, WrittenBy,
                         testing::Values("pax.tar", "gnu.tar", "tar_oldgnu.tar", "tar_posix.tar"));

TEST(TarReader, ReadsThePrefix) {
  Files expected = expected_files();
  expected.erase(std::string(90, 'd') + "/" + std::string(90, 'e') + "/" + std::string(120, 'f'));
  EXPECT_EQ(files_in(data_file("ustar.tar")), expected);
}

TEST(TarReader, TakesTheSizeOfAnExtendedHeader) {
  EXPECT_EQ(files_in(data_file("pax_size.tar")), (Files{{"mod.so", "\x7f"
                                                                   "ELF and so on"}}));
}

TEST(TarReader, UnpacksGzip) {
  const std::string packed = data_file("gnu.tar.gz");
  const auto bytes = gunzip(std::as_bytes(std::span(packed)), 1 << 20, "'a'");
  EXPECT_EQ(as_text(bytes), data_file("gnu.tar"));
}

TEST(TarReader, RefusesArchivesOlderThanPosix) {
  EXPECT_TRUE(throws_error([] { files_in(data_file("tar_v7.tar")); }, ErrorKind::kFormat,
                           "neither POSIX's nor GNU's"));
}

TEST(TarReader, ReadsSizesInBase256) {
  std::string size(12, '\0');
  size[0] = '\x80';
  size[11] = 3;
  EXPECT_EQ(files_in(TarFile().add("f", "abc", '0', size).bytes()), (Files{{"f", "abc"}}));
}

TEST(TarReader, PassesOverFoldersAndGlobalRecords) {
  TarFile tar;
  tar.add("a/", "", '5').add("x", "13 comment=a\n", 'g').add("a/f", "1");
  EXPECT_EQ(files_in(tar.bytes()), (Files{{"a/f", "1"}}));
  EXPECT_EQ(files_in(TarFile().bytes()), Files());
}

struct Refused {
  const char* title;
  std::string archive;
  const char* message;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.title; }

class Refuses : public testing::TestWithParam<Refused> {};

TEST_P(Refuses, WithASentence) {
  EXPECT_TRUE(
      throws_error([] { files_in(GetParam().archive); }, ErrorKind::kFormat, GetParam().message));
}

std::string one(const std::string& name, const std::string& content = "", char type = '0',
                const std::string& size = "") {
  return TarFile().add(name, content, type, size).bytes();
}

std::string too_many() {
  TarFile file;
  for (int i = 0; i < 4097; ++i) file.add("f" + std::to_string(i), "");
  return file.bytes();
}

INSTANTIATE_TEST_SUITE_P(
    Tar, Refuses,
    testing::Values(
        Refused{"Absolute", one("/etc/passwd"), "does not stand for a file inside"},
        Refused{"Parent", one("a/../../b"), "does not stand for a file inside"},
        Refused{"ParentAlone", one(".."), "does not stand for a file inside"},
        Refused{"Nameless", one(""), "does not stand for a file inside"},
        Refused{"EmptyPart", one("a//b"), "does not stand for a file inside"},
        Refused{"LongNameOutside", TarFile().add("L", "../x", 'L').add("y", "").bytes(),
                "does not stand for a file inside"},
        Refused{"PaxNameOutside", TarFile().add("x", "12 path=/ab\n", 'x').add("y", "").bytes(),
                "does not stand for a file inside"},
        Refused{"HardLink", one("a", "", '1'), "a hard link"},
        Refused{"SymbolicLink", one("a", "", '2'), "a symbolic link"},
        Refused{"LongLink", one("a", "target", 'K'), "a symbolic link"},
        Refused{"Device", one("a", "", '3'), "a device"},
        Refused{"Pipe", one("a", "", '6'), "a pipe"},
        Refused{"Sparse", one("a", "", 'S'), "a sparse file"},
        Refused{"PaxSparse", one("x", "22 GNU.sparse.major=1\n", 'x'), "a sparse file"},
        Refused{"Unknown", one("a", "", 'Z'), "neither a file nor a folder"},
        Refused{"FolderWithContent", one("a/", "x", '5'), "has content"},
        Refused{"Twice", TarFile().add("a", "").add("./a", "").bytes(), "holds 'a' twice"},
        Refused{"TooMany", too_many(), "more than the 4096"},
        Refused{"HugeSize", one("a", "", '0', "77777777777"), "is cut off"},
        Refused{"NoSize", one("a", "", '0', "hello world"), "its size is no number"},
        Refused{"HugeRecord", one("x", "", 'x', "77777777777"), "an extended header claims"},
        Refused{"RecordLongerThanItsHeader", one("x", "99 path=a\n", 'x'), "record of an extended"},
        Refused{"RecordWithoutEnd", one("x", "10 path=ab", 'x'), "record of an extended"},
        Refused{"RecordWithoutKey", one("x", "9 pathabc\n", 'x'), "record of an extended"},
        Refused{"RecordOfLengthZero", one("x", "0 path=a\n", 'x'), "record of an extended"},
        Refused{"RecordSize", one("x", "11 size=-1\n", 'x'), "size is no number"},
        Refused{"RecordsOfNothing", one("x", "10 path=a\n", 'x'), "a member that is not there"},
        Refused{"Nothing", "", "is cut off"},
        Refused{"NoEnd", one("a", "x").substr(0, 1024), "is cut off"},
        Refused{"Behind", one("a", "x") + std::string(511, '\0') + "x", "follows its end mark"}),
    [](const auto& refused) { return refused.param.title; });

}  // namespace
}  // namespace run_model
