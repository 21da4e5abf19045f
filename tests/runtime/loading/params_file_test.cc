#include "runtime/loading/params_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/runtime/test_params.h"

namespace run_model {
namespace {

using testing::HasSubstr;

using testing_params::params_bytes;
using testing_params::tensor_record;

std::string two_params() {
  return params_bytes({{"w", tensor_record({2, 1}, parse_dtype("float32"), "abcdefgh")},
                       {"b", tensor_record({}, parse_dtype("int8"), "z")}});
}

std::vector<Param> parse_text(const std::string& text) {
  return parse_params(std::as_bytes(std::span(text)), "file 'p'");
}

std::string refusal(const std::string& text) {
  try {
    parse_text(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    return error.what();
  }
  return "accepted";
}

TEST(ParamsFile, ReadsNamesShapesTypesAndData) {
  std::string text = two_params();
  std::vector<Param> params = parse_text(text);
  ASSERT_EQ(params.size(), 2u);
  EXPECT_EQ(params[0].name, "w");
  EXPECT_TRUE(has_elements(params[0].shape, {2, 1}));
  EXPECT_EQ(dtype_name(params[0].dtype), "float32");
  EXPECT_EQ(std::memcmp(params[0].data.data(), "abcdefgh", 8), 0);
  EXPECT_TRUE(params[1].shape.empty());
  EXPECT_EQ(params[1].data.size(), 1u);
}

TEST(ParamsFile, LeavesPaddingOut) {
  std::string text = params_bytes({{"__align0", tensor_record({3}, parse_dtype("uint8"), "xxx")},
                                   {"w", tensor_record({1}, parse_dtype("float32"), "abcd")}});
  std::vector<Param> params = parse_text(text);
  ASSERT_EQ(params.size(), 1u);
  EXPECT_EQ(params[0].name, "w");
}

TEST(ParamsFile, AcceptsNoParametersAtAll) { EXPECT_TRUE(parse_text(params_bytes({})).empty()); }

TEST(ParamsFile, RefusesEveryTruncationAndAppendedBytes) {
  std::string text = two_params();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(refusal(text.substr(0, length)), "accepted") << length;
  }
  EXPECT_THAT(refusal(text + "x"), HasSubstr("1 bytes are left over"));
}

// A changed byte may change a value, but must never read outside the bytes or accept a changed
// layout.
TEST(ParamsFile, SurvivesEveryChangedByte) {
  std::string text = two_params();
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (unsigned flip : {0x01u, 0x80u, 0xFFu}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ flip);
      try {
        for (const Param& param : parse_text(damaged)) {
          EXPECT_EQ(param.data.size(), tensor_bytes(param.shape, param.dtype));
        }
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(text.size()));
}

TEST(ParamsFile, NamesWhatIsWrong) {
  std::string record = tensor_record({1}, parse_dtype("float32"), "abcd");
  EXPECT_THAT(refusal("{\"nodes\": []}  "), HasSubstr("swapped"));
  EXPECT_THAT(refusal(params_bytes({{"w", record}, {"w", record}})),
              HasSubstr("'w' is there twice"));
  EXPECT_THAT(refusal(params_bytes({{"w", tensor_record({2}, parse_dtype("float32"), "abcd")}})),
              HasSubstr("says that it has 4 bytes"));
  EXPECT_THAT(refusal(params_bytes({{"w", tensor_record({-1}, parse_dtype("float32"), "abcd")}})),
              HasSubstr("negative dimension"));
  EXPECT_THAT(refusal(params_bytes({{"w", tensor_record({std::int64_t{1} << 62, 64},
                                                        parse_dtype("float32"), "abcd")}})),
              HasSubstr("too many elements"));
  EXPECT_THAT(refusal(params_bytes({{"w", tensor_record({1}, {kDLFloat, 32, 4}, "abcd")}})),
              HasSubstr("none that a parameter can have"));
  std::string on_gpu = record;
  on_gpu[16] = 2;
  EXPECT_THAT(refusal(params_bytes({{"w", on_gpu}})), HasSubstr("device type 2"));
}

TEST(ParamRecords, ReadWithTheirNamesGivenApart) {
  std::string text = tensor_record({4}, parse_dtype("uint8"), "abcd") +
                     tensor_record({1}, parse_dtype("int64"), "12345678");
  std::vector<std::string> names{"a", "b"};
  auto bytes = std::as_bytes(std::span(text));
  ByteReader reader(bytes, "library 'l'");
  EXPECT_EQ(read_tensors(reader, names).size(), 2u);
  EXPECT_TRUE(reader.at_end());
  names.push_back("c");
  ByteReader again(bytes, "library 'l'");
  EXPECT_THROW(read_tensors(again, names), Error);
}

}  // namespace
}  // namespace run_model
