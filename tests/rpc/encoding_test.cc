// What clients of TVM 0.21 and later send and are sent, and by what they are told from older ones.
#include "rpc/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include "rpc/functions/builtin.h"
#include "tests/has_elements.h"
#include "tests/rpc/frame_client.h"
#include "tests/temporary_folder.h"

namespace run_model::rpc {
namespace {

using testing::HasSubstr;

constexpr DLDataType kNumbers{kDLFloat, 32, 1};

std::optional<Encoding> told(RequestCode request, std::initializer_list<std::int32_t> words) {
  return encoding_of(request, {words.begin(), words.size()});
}

TEST(EncodingTest, TheFirstRequestThatDiffersTells) {
  constexpr auto kFind = RequestCode::kGetGlobalFunc;
  EXPECT_EQ(told(kFind, {1, kTypeString, 4}), Encoding::kTvm08);
  EXPECT_EQ(told(kFind, {1, 8, 4}), Encoding::kTvm021);
  EXPECT_EQ(told(RequestCode::kInitServer, {1, 65, 65}), Encoding::kTvm021);
  for (const auto request : {RequestCode::kDevGetAttr, RequestCode::kDevAllocData}) {
    EXPECT_EQ(told(request, {2, kTypeDevice, kTypeInt}), Encoding::kTvm08);
    for (const std::int32_t device : {1, 2, 4, 7, 8}) {
      EXPECT_EQ(told(request, {2, kTypeDevice, device}), Encoding::kTvm021) << device;
    }
  }
  constexpr auto kSync = RequestCode::kDevStreamSync;
  EXPECT_EQ(told(kSync, {2, kTypeDevice, kTypeOpaqueHandle}), Encoding::kTvm08);
  EXPECT_EQ(told(kSync, {2, kTypeDevice, kTypeNull}), Encoding::kTvm08);
  EXPECT_EQ(told(kSync, {2, kTypeDevice, kDLCPU}), Encoding::kTvm021);
  constexpr auto kAllocate = RequestCode::kDevAllocDataWithScope;
  EXPECT_EQ(told(kAllocate, {2, kTypeTensorHandle, kTypeNull}), Encoding::kTvm08);
  EXPECT_EQ(told(kAllocate, {2, kTypeTensorHandle, kTypeString}), Encoding::kTvm08);
  EXPECT_EQ(told(kAllocate, {2, kTypeTensorHandle, 0}), Encoding::kTvm021);
}

TEST(EncodingTest, WhatIsTheSameInBothTellsNothing) {
  EXPECT_EQ(told(RequestCode::kInitServer, {0}), std::nullopt);
  EXPECT_EQ(told(RequestCode::kInitServer, {}), std::nullopt);
  EXPECT_EQ(told(RequestCode::kDevSetDevice, {1, kTypeDevice, kDLCPU}), std::nullopt);
  EXPECT_EQ(told(RequestCode::kGetGlobalFunc, {-1, 8, 4}), std::nullopt);
}

class NewSessionTest : public testing::Test {
 protected:
  NewSessionTest() {
    add_file_functions(functions_, files_);
    functions_.add("echo", [](const Arguments& arguments) { return arguments[0]; });
    functions_.add("fail", [](const Arguments& arguments) -> Value {
      throw Error(ErrorKind::kModel, "it went wrong with " + arguments.text(0));
    });
    session_.initialize();
  }

  std::uint64_t function(std::string_view name) {
    AnswerParts answer = session_.ask(
        FrameBuilder(RequestCode::kGetGlobalFunc).count(1).type(WireType::kText).text(name));
    EXPECT_EQ(answer.code(), RequestCode::kReturn);
    EXPECT_EQ(answer.number<std::int32_t>(), 1);
    EXPECT_EQ(answer.number<std::int32_t>(), 4);
    return answer.number<std::uint64_t>();
  }

  FrameBuilder call(std::string_view name, std::int32_t values) {
    return FrameBuilder(RequestCode::kCallFunc).number(function(name)).count(values);
  }

  // The answer of a call without its first value, which says what the result is.
  AnswerParts result(const FrameBuilder& frame, std::int64_t code, std::int32_t values = 2) {
    AnswerParts answer = session_.ask(frame);
    EXPECT_EQ(answer.code(), RequestCode::kReturn);
    EXPECT_EQ(answer.number<std::int32_t>(), values);
    EXPECT_EQ(answer.number<std::int32_t>(), 1);
    EXPECT_EQ(answer.number<std::int64_t>(), code);
    return answer;
  }

  TemporaryFolder folder_;
  SessionFolder files_{folder_.path(), 1 << 20};
  Registry functions_;
  SessionThread session_{functions_};
};

TEST_F(NewSessionTest, EchoesEveryKindOfValue) {
  AnswerParts integer =
      result(call("echo", 1).type(WireType::kInteger).number(std::int64_t{-7}), 1);
  EXPECT_EQ(integer.number<std::int32_t>(), 1);
  EXPECT_EQ(integer.number<std::int64_t>(), -7);
  AnswerParts truth = result(call("echo", 1).type(WireType::kBool).number(std::int64_t{1}), 2);
  EXPECT_EQ(truth.number<std::int32_t>(), 2);
  EXPECT_EQ(truth.number<std::int64_t>(), 1);
  AnswerParts real = result(call("echo", 1).type(WireType::kReal).number(2.5), 3);
  EXPECT_EQ(real.number<std::int32_t>(), 3);
  EXPECT_EQ(real.number<double>(), 2.5);
  AnswerParts null = result(call("echo", 1).type(WireType::kNull), 0);
  EXPECT_EQ(null.number<std::int32_t>(), 0);
  EXPECT_EQ(null.rest(), "");
  functions_.add("nothing", [](const Arguments&) -> Value { return FunctionPointer(); });
  EXPECT_EQ(result(call("nothing", 0), 0).number<std::int32_t>(), 0);
  const std::string long_bytes(100000, '\x80');
  // Long and short texts and bytes, as pointers and as objects; they come back as pointers.
  for (const std::int32_t index : {65, 11}) {
    AnswerParts text =
        result(call("echo", 1).number(index).number(std::int32_t{65}).text("a b"), 65);
    EXPECT_EQ(text.number<std::int32_t>(), 8);
    EXPECT_EQ(text.text(), "a b");
  }
  for (const std::int32_t index : {66, 12}) {
    AnswerParts bytes =
        result(call("echo", 1).number(index).number(std::int32_t{66}).text(long_bytes), 66);
    EXPECT_EQ(bytes.number<std::int32_t>(), 9);
    EXPECT_EQ(bytes.text(), long_bytes);
  }
  AnswerParts function_back =
      result(call("echo", 1).type(WireType::kFunction).number(function("echo")), 68);
  EXPECT_EQ(function_back.number<std::int32_t>(), 4);
}

TEST_F(NewSessionTest, TensorsAreAllocatedCopiedGivenAndFreed) {
  AnswerParts allocated = session_.ask(FrameBuilder(RequestCode::kDevAllocDataWithScope)
                                           .count(2)
                                           .type(WireType::kTensor)
                                           .tensor(0, {4}, kNumbers)
                                           .type(WireType::kNull));
  EXPECT_EQ(allocated.code(), RequestCode::kReturn);
  allocated.codes();
  const auto memory = allocated.number<std::uint64_t>();
  const std::string content("0123456789abcdef");
  AnswerParts written = session_.ask(FrameBuilder(RequestCode::kCopyToRemote)
                                         .tensor(memory, {4}, kNumbers)
                                         .number(std::uint64_t{16})
                                         .raw(content));
  EXPECT_EQ(written.code(), RequestCode::kReturn);
  EXPECT_TRUE(has_elements(written.codes(), {0}));

  AnswerParts array =
      result(call("echo", 1).type(WireType::kTensor).tensor(memory, {4}, kNumbers), 70, 3);
  EXPECT_EQ(array.number<std::int32_t>(), 7);
  const auto given = array.number<std::uint64_t>();
  EXPECT_EQ(given,
            array.rest().size() == 44 ? given : 0);  // device, n, dtype, shape, offset, 4, u64
  AnswerParts back = session_.ask(FrameBuilder(RequestCode::kCopyFromRemote)
                                      .tensor(given, {4}, kNumbers)
                                      .number(std::uint64_t{16}));
  EXPECT_EQ(back.code(), RequestCode::kCopyAck);
  EXPECT_EQ(back.rest(), content);

  const auto free = [&](std::uint64_t handle) {
    return session_
        .ask(FrameBuilder(RequestCode::kFreeHandle).count(1).type(WireType::kOpaque).number(handle))
        .exception();
  };
  EXPECT_EQ(free(given), "");
  EXPECT_THAT(free(given), HasSubstr("was freed"));
  EXPECT_THAT(free(memory), HasSubstr("is allocated memory"));
  EXPECT_EQ(free(0), "");
}

TEST_F(NewSessionTest, UploadsComeAsBytesOfAnyKind) {
  const auto upload = [&](std::int32_t index, std::optional<std::int32_t> again) {
    FrameBuilder frame = call("tvm.rpc.server.upload", 2).type(WireType::kText).text("a");
    frame.number(index);
    if (again) frame.number(*again);
    return session_.ask(frame.text("content")).exception();
  };
  EXPECT_EQ(upload(66, 66), "");
  EXPECT_EQ(upload(9, std::nullopt), "");
  EXPECT_THAT(upload(71, 115), HasSubstr("was given other arguments"));
  AnswerParts back = result(call("tvm.rpc.server.download", 1).type(WireType::kText).text("a"), 66);
  EXPECT_EQ(back.number<std::int32_t>(), 9);
  EXPECT_EQ(back.text(), "content");
}

TEST_F(NewSessionTest, ErrorsComeInTheClientsEncodingAndTheSessionGoesOn) {
  AnswerParts failed = session_.ask(call("fail", 1).type(WireType::kText).text("x"));
  ASSERT_EQ(failed.code(), RequestCode::kException);
  EXPECT_TRUE(has_elements(failed.codes(), {8}));
  EXPECT_EQ(failed.text(), "it went wrong with x");
  EXPECT_EQ(session_.progress().encoding(), Encoding::kTvm021);
  const auto refused = [&](const FrameBuilder& frame, const char* why) {
    EXPECT_THAT(session_.ask(frame).exception(), HasSubstr(why));
  };
  refused(call("echo", 1).number(std::int32_t{10}), "unknown type code 10");
  refused(call("echo", 1).number(std::int32_t{70}), "unknown type code 70");
  refused(call("echo", 1).number(std::int32_t{115}).number(std::int32_t{115}).number(~0ull),
          "never given out or was freed");
  refused(call("echo", 4096).type(WireType::kNull), "shorter than what it says");
  refused(call("echo", 1).type(WireType::kModule).number(function("echo")),
          "is a function, expected a module");
  refused(call("echo", -1), "has -1 arguments");
  EXPECT_EQ(session_.ask(call("echo", 1).type(WireType::kNull)).exception(), "");
}

}  // namespace
}  // namespace run_model::rpc
