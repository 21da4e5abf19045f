#include <run_model/labels.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <run_model/error.h>

namespace run_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

ErrorKind code_of(const std::string& text, const std::string& expected) {
  try {
    parse_labels(text, "classes.txt");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("classes.txt"));
    EXPECT_THAT(error.what(), HasSubstr(expected));
    return error.kind();
  }
  ADD_FAILURE() << "accepted: " << text;
  return ErrorKind::kInternal;
}

TEST(LabelsTest, KeepsLinesAsTheyAre) {
  EXPECT_THAT(parse_labels("tench\ntiger cat, Felis\ncafé\n", "l"),
              ElementsAre("tench", "tiger cat, Felis", "café"));
}

TEST(LabelsTest, LastLineNeedsNoNewline) {
  EXPECT_THAT(parse_labels("a\nb", "l"), ElementsAre("a", "b"));
}

TEST(LabelsTest, DropsByteOrderMarkCarriageReturnsAndBlankEnd) {
  EXPECT_THAT(parse_labels("\xEF\xBB\xBF"
                           "a\r\nb\r\n\r\n \n",
                           "l"),
              ElementsAre("a", "b"));
}

TEST(LabelsTest, LeavesOutSynsetIdsWhereEveryLineHasOne) {
  EXPECT_THAT(parse_labels("n01440764 tench, Tinca tinca\nn02123159 tiger cat\n", "l"),
              ElementsAre("tench, Tinca tinca", "tiger cat"));
  EXPECT_THAT(parse_labels("n01440764 tench\nn02 cat\n", "l"),
              ElementsAre("n01440764 tench", "n02 cat"));
  EXPECT_THAT(parse_labels("n0144076x tench\n", "l"), ElementsAre("n0144076x tench"));
}

TEST(LabelsTest, RefusesWhatIsNoLabelFile) {
  EXPECT_EQ(code_of("", "empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("\n\r\n", "empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\n\nb\n", "line 2 is empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\n" + std::string(1025, 'x'), "line 2 has 1025 bytes"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\nb\xFF\n", "line 2 is not UTF-8"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\x1B[2J\n", "control characters"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\0b\n"s, "control characters"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("{0: 'tench',\n1: 'goldfish'}\n", "dictionary"), ErrorKind::kFormat);
}

TEST(LabelsTest, AcceptsALineOfTheGreatestLength) {
  EXPECT_THAT(parse_labels(std::string(1024, 'x'), "l"), ElementsAre(std::string(1024, 'x')));
}

TEST(LabelsTest, MissingFileAndFolderAreFileErrors) {
  for (const std::string path : {"/nonexistent/labels.txt", "/tmp"}) {
    try {
      read_labels(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFile);
      EXPECT_THAT(error.what(), HasSubstr("'" + path + "'"));
    }
  }
}

TEST(LabelsTest, CountMustBeTheOutputs) {
  EXPECT_NO_THROW(check_label_count(1000, 1000, "l.txt"));
  try {
    check_label_count(1000, 1001, "l.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("'l.txt' has 1000 labels, but the model tells 1001"));
  }
}

}  // namespace
}  // namespace run_model
