#include <run_model/labels.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <run_model/error.h>
#include "tests/has_elements.h"

namespace run_model {
namespace {

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
  EXPECT_TRUE(has_elements(parse_labels("tench\ntiger cat, Felis\ncafé\n", "l"),
                           {"tench", "tiger cat, Felis", "café"}));
}

TEST(LabelsTest, LastLineNeedsNoNewline) {
  EXPECT_TRUE(has_elements(parse_labels("a\nb", "l"), {"a", "b"}));
}

TEST(LabelsTest, DropsByteOrderMarkCarriageReturnsAndBlankEnd) {
  EXPECT_TRUE(has_elements(parse_labels("\xEF\xBB\xBF"
                                        "a\r\nb\r\n\r\n \n",
                                        "l"),
                           {"a", "b"}));
}

TEST(LabelsTest, LeavesOutSynsetIdsWhereEveryLineHasOne) {
  EXPECT_TRUE(has_elements(parse_labels("n01440764 tench, Tinca tinca\nn02123159 tiger cat\n", "l"),
                           {"tench, Tinca tinca", "tiger cat"}));
  EXPECT_TRUE(has_elements(parse_labels("n01440764 tench\nn02 cat\n", "l"),
                           {"n01440764 tench", "n02 cat"}));
  EXPECT_TRUE(has_elements(parse_labels("n0144076x tench\n", "l"), {"n0144076x tench"}));
}

TEST(LabelsTest, RefusesNumbersThatAreInAnotherOrder) {
  EXPECT_EQ(code_of("0: a\n2: c\n1: b\n", "line 2 has another number than its place"),
            ErrorKind::kFormat);
  EXPECT_EQ(code_of("2 b\n1 a\n", "sort the lines by their numbers"), ErrorKind::kFormat);
  for (const std::string numbered :
       {"0: a\n1: b\n", "1,a\n2,b\n", "5 a\n4 b\n", "1 a\n1 b\n", "1\n0\n", "1st a\n0th b\n"}) {
    EXPECT_EQ(parse_labels(numbered, "l").at(1),
              numbered.substr(numbered.find('\n') + 1, numbered.find('\n')));
  }
}

TEST(LabelsTest, RefusesWhatIsNoLabelFile) {
  EXPECT_EQ(code_of("", "empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("\n\r\n", "empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\n\nb\n", "line 2 is empty"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\n" + std::string(1025, 'x'), "line 2 has 1025 bytes"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\nb\xFF\n", "line 2 is not UTF-8"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\x1B[2J\n", "control characters"), ErrorKind::kFormat);
  EXPECT_EQ(code_of(" [\n\"a\",\n\"b\"\n]\n", "JSON list"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("[\"a\", \"b\"]\n", "JSON list"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("a\0b\n"s, "control characters"), ErrorKind::kFormat);
  EXPECT_EQ(code_of("{0: 'tench',\n1: 'goldfish'}\n", "dictionary"), ErrorKind::kFormat);
}

TEST(LabelsTest, AcceptsALineOfTheGreatestLength) {
  EXPECT_TRUE(has_elements(parse_labels(std::string(1024, 'x'), "l"), {std::string(1024, 'x')}));
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
