#include <run_model/rpc/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <run_model/error.h>
#include "rpc/functions/builtin.h"
#include "rpc/server/sessions/confinement.h"
#include "tests/has_elements.h"
#include "tests/rpc/frame_client.h"
#include "tests/temporary_folder.h"

namespace run_model::rpc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr DLDataType kFloats{kDLFloat, 32, 1};

class CountedObject final : public RemoteObject {
 public:
  explicit CountedObject(int& alive) : alive_(alive) { ++alive_; }
  ~CountedObject() override { --alive_; }
  std::string kind() const override { return "counted"; }

 private:
  int& alive_;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    add_file_functions(functions_, files_);
    functions_.add("echo", [](const Arguments& arguments) { return arguments[0]; });
    functions_.add("fail", [](const Arguments& arguments) -> Value {
      throw Error(ErrorKind::kModel, "it went wrong with " + arguments.text(0));
    });
    functions_.add("object", [this](const Arguments&) -> Value {
      return std::shared_ptr<RemoteObject>(std::make_shared<CountedObject>(alive_));
    });
  }

  FrameBuilder call(SessionThread& session, const char* name) {
    return FrameBuilder(RequestCode::kCallFunc).number(session.function(name));
  }

  TemporaryFolder folder_;
  SessionFolder files_{folder_.path(), 1 << 20};
  Registry functions_;
  int alive_ = 0;
};

TEST_F(SessionTest, EchoesEveryKindOfValue) {
  SessionThread session(functions_);
  session.initialize();

  AnswerParts integer =
      session.ask(call(session, "echo").codes({kTypeInt}).number(std::int64_t{-7}));
  ASSERT_EQ(integer.code(), RequestCode::kReturn);
  EXPECT_TRUE(has_elements(integer.codes(), {kTypeInt, kTypeInt}));
  EXPECT_EQ(integer.number<std::int64_t>(), kTypeInt);
  EXPECT_EQ(integer.number<std::int64_t>(), -7);

  AnswerParts real = session.ask(call(session, "echo").codes({kTypeFloat}).number(2.5));
  real.code();
  EXPECT_TRUE(has_elements(real.codes(), {kTypeInt, kTypeFloat}));
  real.number<std::int64_t>();
  EXPECT_EQ(real.number<double>(), 2.5);

  AnswerParts text = session.ask(call(session, "echo").codes({kTypeString}).text("a b"));
  text.code();
  EXPECT_TRUE(has_elements(text.codes(), {kTypeInt, kTypeString}));
  text.number<std::int64_t>();
  EXPECT_EQ(text.text(), "a b");

  const std::string long_bytes(100000, '\x80');
  AnswerParts bytes = session.ask(call(session, "echo").codes({kTypeBytes}).text(long_bytes));
  bytes.code();
  EXPECT_TRUE(has_elements(bytes.codes(), {kTypeInt, kTypeBytes}));
  EXPECT_EQ(bytes.number<std::int64_t>(), kTypeBytes);
  EXPECT_EQ(bytes.text(), long_bytes);

  AnswerParts null = session.ask(call(session, "echo").codes({kTypeNull}));
  null.code();
  EXPECT_TRUE(has_elements(null.codes(), {kTypeInt, kTypeNull}));
  EXPECT_EQ(null.number<std::int64_t>(), kTypeNull);
  EXPECT_THAT(null.rest(), IsEmpty());

  AnswerParts dtype = session.ask(call(session, "echo")
                                      .codes({kTypeDataType})
                                      .number(std::uint8_t{kDLInt})
                                      .number(std::uint8_t{8})
                                      .number(std::uint16_t{4})
                                      .number(std::int32_t{0}));
  dtype.code();
  EXPECT_TRUE(has_elements(dtype.codes(), {kTypeInt, kTypeDataType}));
  dtype.number<std::int64_t>();
  EXPECT_EQ(dtype.number<std::uint8_t>(), kDLInt);
  EXPECT_EQ(dtype.number<std::uint8_t>(), 8);
  EXPECT_EQ(dtype.number<std::uint16_t>(), 4);
}

TEST_F(SessionTest, CopiesTensorsThereAndBackInPieces) {
  SessionThread session(functions_);
  session.initialize();
  const std::uint64_t memory = session.allocate(16);
  const std::string content("0123456789abcdef");
  for (const std::uint64_t offset : {8, 0}) {
    AnswerParts written = session.ask(FrameBuilder(RequestCode::kCopyToRemote)
                                          .tensor(memory, {4}, kFloats, offset)
                                          .number(std::uint64_t{8})
                                          .raw(content.substr(offset, 8)));
    ASSERT_EQ(written.code(), RequestCode::kReturn);
  }
  AnswerParts back = session.ask(FrameBuilder(RequestCode::kCopyFromRemote)
                                     .tensor(memory, {4}, kFloats)
                                     .number(std::uint64_t{16}));
  ASSERT_EQ(back.code(), RequestCode::kCopyAck);
  EXPECT_EQ(back.rest(), content);

  AnswerParts part = session.ask(FrameBuilder(RequestCode::kCopyFromRemote)
                                     .tensor(memory, {4}, kFloats, 12)
                                     .number(std::uint64_t{4}));
  part.code();
  EXPECT_EQ(part.rest(), "cdef");
}

TEST_F(SessionTest, RefusesTensorsBeyondTheirMemory) {
  SessionThread session(functions_);
  session.initialize();
  const std::uint64_t memory = session.allocate(16);
  const auto copy = [&](std::uint64_t handle, std::uint64_t offset, std::uint64_t bytes) {
    return session
        .ask(FrameBuilder(RequestCode::kCopyFromRemote)
                 .tensor(handle, {4}, kFloats, offset)
                 .number(bytes))
        .exception();
  };
  EXPECT_THAT(copy(memory, 0, 17), HasSubstr("does not lie within its memory of 16 bytes"));
  EXPECT_THAT(copy(memory, 13, 4), HasSubstr("does not lie within"));
  EXPECT_THAT(copy(memory, ~std::uint64_t{0}, 4), HasSubstr("does not lie within"));
  EXPECT_THAT(copy(memory, 0, ~std::uint64_t{0}), Not(IsEmpty()));
  EXPECT_THAT(copy(memory + 1, 0, 4), HasSubstr("never given out or was freed"));
  EXPECT_THAT(
      session.ask(call(session, "echo").codes({kTypeTensorHandle}).tensor(memory, {5}, kFloats))
          .exception(),
      HasSubstr("does not lie within"));
  EXPECT_THAT(session
                  .ask(call(session, "echo")
                           .codes({kTypeTensorHandle})
                           .tensor(memory, {std::int64_t{1} << 62, 64}, kFloats))
                  .exception(),
              Not(IsEmpty()));
  EXPECT_THAT(session
                  .ask(call(session, "echo")
                           .codes({kTypeTensorHandle})
                           .tensor(memory, {4}, kFloats, 0, kDLCUDA))
                  .exception(),
              HasSubstr("expected a GPU's"));
  // The session goes on.
  EXPECT_EQ(copy(memory, 0, 16), "");
}

TEST_F(SessionTest, FreedHandlesAreNoticed) {
  SessionThread session(functions_);
  session.initialize();
  const std::uint64_t memory = session.allocate(4);
  const auto free_memory = [&] {
    return session
        .ask(FrameBuilder(RequestCode::kDevFreeData)
                 .codes({kTypeDevice, kTypeOpaqueHandle})
                 .device()
                 .number(memory))
        .exception();
  };
  EXPECT_EQ(free_memory(), "");
  EXPECT_THAT(free_memory(), HasSubstr("was freed"));

  const std::uint64_t function = session.function("echo");
  const auto free_function = [&](std::int64_t type_code) {
    return session
        .ask(FrameBuilder(RequestCode::kFreeHandle)
                 .codes({kTypeOpaqueHandle, kTypeInt})
                 .number(function)
                 .number(type_code))
        .exception();
  };
  EXPECT_THAT(free_function(kTypeModuleHandle),
              HasSubstr("is a function, but was to be freed as a module"));
  EXPECT_THAT(free_function(99), HasSubstr("cannot be freed"));
  EXPECT_EQ(free_function(kTypePackedFunctionHandle), "");
  EXPECT_THAT(
      session.ask(FrameBuilder(RequestCode::kCallFunc).number(function).codes({})).exception(),
      HasSubstr("was freed"));
}

TEST_F(SessionTest, ObjectsLiveAsLongAsTheirHandles) {
  {
    SessionThread session(functions_);
    session.initialize();
    for (int i = 0; i < 2; ++i) session.ask(call(session, "object").codes({}));
    AnswerParts answer = session.ask(call(session, "object").codes({}));
    answer.code();
    EXPECT_TRUE(has_elements(answer.codes(), {kTypeInt, kTypeOpaqueHandle}));
    EXPECT_EQ(answer.number<std::int64_t>(), kTypeObjectHandle);
    const auto handle = answer.number<std::uint64_t>();
    EXPECT_EQ(alive_, 3);
    EXPECT_EQ(session
                  .ask(FrameBuilder(RequestCode::kFreeHandle)
                           .codes({kTypeOpaqueHandle, kTypeInt})
                           .number(handle)
                           .number(std::int64_t{kTypeObjectHandle}))
                  .exception(),
              "");
    EXPECT_EQ(alive_, 2);
  }
  EXPECT_EQ(alive_, 0);
}

TEST_F(SessionTest, LimitsTheHandlesOfASession) {
  SessionLimits limits;
  limits.handles = 3;
  SessionThread session(functions_, limits);
  session.initialize();
  for (int i = 0; i < 3; ++i) session.function("echo");
  EXPECT_THAT(
      session.ask(FrameBuilder(RequestCode::kGetGlobalFunc).codes({kTypeString}).text("echo"))
          .exception(),
      HasSubstr("3 handles"));
}

TEST_F(SessionTest, FunctionsThatDoNotExistAreNull) {
  SessionThread session(functions_);
  session.initialize();
  EXPECT_EQ(session.function("nothing"), 0u);
}

TEST_F(SessionTest, AFailureReachesTheClientAndTheSessionGoesOn) {
  SessionThread session(functions_);
  session.initialize();
  EXPECT_EQ(session.ask(call(session, "fail").codes({kTypeString}).text("x")).exception(),
            "it went wrong with x");
  EXPECT_EQ(
      session.ask(call(session, "echo").codes({kTypeInt}).number(std::int64_t{1})).exception(), "");
}

TEST_F(SessionTest, UploadsAreStreamedIntoTheFolder) {
  SessionThread session(functions_);
  session.initialize();
  const std::string content(700000, 'x');
  EXPECT_EQ(session
                .ask(call(session, "tvm.rpc.server.upload")
                         .codes({kTypeString, kTypeBytes})
                         .text("a.bin")
                         .text(content))
                .exception(),
            "");
  EXPECT_EQ(std::filesystem::file_size(folder_.path() / "a.bin"), content.size());
  AnswerParts back =
      session.ask(call(session, "tvm.rpc.server.download").codes({kTypeString}).text("a.bin"));
  back.code();
  back.codes();
  back.number<std::int64_t>();
  EXPECT_EQ(back.text(), content);
}

TEST_F(SessionTest, ARefusedUploadLeavesNothingAndTheSessionGoesOn) {
  SessionThread session(functions_);
  session.initialize();
  const std::string content((1 << 20) + 1, 'x');
  for (const char* name : {"../a", "/tmp/a", ".a", "a/b", ""}) {
    EXPECT_THAT(session
                    .ask(call(session, "tvm.rpc.server.upload")
                             .codes({kTypeString, kTypeBytes})
                             .text(name)
                             .text("1"))
                    .exception(),
                HasSubstr("is refused"));
  }
  EXPECT_THAT(session
                  .ask(call(session, "tvm.rpc.server.upload")
                           .codes({kTypeString, kTypeBytes})
                           .text("a")
                           .text(content))
                  .exception(),
              HasSubstr("does not fit"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_EQ(
      session.ask(call(session, "echo").codes({kTypeInt}).number(std::int64_t{1})).exception(), "");
}

TEST_F(SessionTest, AnUploadThatBreaksOffLeavesNothing) {
  SessionThread session(functions_);
  session.initialize();
  const std::string frame = call(session, "tvm.rpc.server.upload")
                                .codes({kTypeString, kTypeBytes})
                                .text("a")
                                .text(std::string(300000, 'x'))
                                .frame();
  session.send(std::string_view(frame).substr(0, frame.size() - 1));
  EXPECT_EQ(session.finish(), SessionEnd::kBroken);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SessionTest, MalformedRequestsAreAnsweredAndSkipped) {
  SessionThread session(functions_);
  session.initialize();
  const std::uint64_t echo = session.function("echo");
  const auto refused = [&](const FrameBuilder& frame, const char* why) {
    EXPECT_THAT(session.ask(frame).exception(), HasSubstr(why));
  };
  refused(FrameBuilder(static_cast<RequestCode>(99)).codes({}), "request code 99 is unknown");
  refused(FrameBuilder(static_cast<RequestCode>(-1)).codes({}), "is unknown");
  refused(FrameBuilder(RequestCode::kCallFunc), "shorter than what it says");
  refused(FrameBuilder(RequestCode::kCallFunc).number(echo).number(std::int32_t{-1}),
          "has -1 arguments");
  refused(FrameBuilder(RequestCode::kCallFunc).number(echo).number(std::int32_t{1 << 30}),
          "arguments");
  refused(FrameBuilder(RequestCode::kCallFunc).number(echo).codes({77}), "unknown type code 77");
  refused(FrameBuilder(RequestCode::kCallFunc)
              .number(echo)
              .codes({kTypeString})
              .number(~std::uint64_t{0}),
          "shorter than what it says");
  refused(FrameBuilder(RequestCode::kCallFunc).number(echo).codes({kTypeNull}).raw("more"),
          "longer than what it holds");
  refused(FrameBuilder(RequestCode::kCallFunc)
              .number(echo)
              .codes({kTypeTensorHandle})
              .number(echo)
              .device()
              .number(std::int32_t{-5}),
          "-5");
  refused(FrameBuilder(RequestCode::kInitServer).text(kProtocolVersion).codes({}),
          "initialised before");
  EXPECT_EQ(
      session.ask(FrameBuilder(RequestCode::kCallFunc).number(echo).codes({kTypeNull})).exception(),
      "");
}

// Memory is for what has come, not for what is said to come.
TEST_F(SessionTest, ATextThatIsOnlyAnnouncedTakesNoMemory) {
  SessionThread session(functions_);
  session.initialize();
  const std::uint64_t echo = session.function("echo");
  const std::uint64_t before = process_memory("self", MemoryKind::kResident);
  constexpr std::uint64_t kAnnounced = std::uint64_t{1} << 30;
  const std::string head = FrameBuilder(RequestCode::kCallFunc)
                               .number(echo)
                               .codes({kTypeString})
                               .number(kAnnounced)
                               .frame();
  const std::uint64_t frame_bytes = head.size() - sizeof(std::uint64_t) + kAnnounced;
  session.send(std::string(reinterpret_cast<const char*>(&frame_bytes), sizeof(frame_bytes)) +
               head.substr(sizeof(frame_bytes)));
  std::uint64_t most = before;
  for (int i = 0; i < 100; ++i) {
    ::usleep(5000);
    most = std::max(most, process_memory("self", MemoryKind::kResident));
  }
  EXPECT_LT(most - before, std::uint64_t{64} << 20);
  EXPECT_EQ(session.finish(), SessionEnd::kBroken);
}

TEST_F(SessionTest, LongTextsArriveWhole) {
  SessionThread session(functions_);
  session.initialize();
  std::string text(5'000'000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  AnswerParts answer = session.ask(call(session, "echo").codes({kTypeString}).text(text));
  EXPECT_EQ(answer.code(), RequestCode::kReturn);
  answer.codes();
  answer.number<std::int64_t>();
  EXPECT_TRUE(answer.text() == text);
}

TEST_F(SessionTest, AFrameThatAnnouncesTooMuchEndsTheSession) {
  SessionThread session(functions_);
  const std::uint64_t length = ~std::uint64_t{0};
  session.send(std::string_view(reinterpret_cast<const char*>(&length), sizeof(length)));
  const std::int32_t code = 99;
  session.send(std::string_view(reinterpret_cast<const char*>(&code), sizeof(code)));
  EXPECT_THAT(session.receive().exception(), HasSubstr("larger than the server's limit"));
  EXPECT_EQ(session.finish(), SessionEnd::kBroken);
}

TEST_F(SessionTest, RequestsBeforeTheStartAreRefused) {
  SessionThread session(functions_);
  EXPECT_THAT(
      session.ask(FrameBuilder(RequestCode::kGetGlobalFunc).codes({kTypeString}).text("echo"))
          .exception(),
      HasSubstr("before the session was initialised"));
}

TEST_F(SessionTest, AnotherProtocolVersionIsNamed) {
  SessionThread session(functions_);
  EXPECT_THAT(
      session.ask(FrameBuilder(RequestCode::kInitServer).text("0.7.0").codes({})).exception(),
      HasSubstr("version '0.7.0'"));
}

TEST_F(SessionTest, SessionConstructorsAreRefusedByName) {
  SessionThread session(functions_);
  EXPECT_THAT(session
                  .ask(FrameBuilder(RequestCode::kInitServer)
                           .text(kProtocolVersion)
                           .codes({kTypeString})
                           .text("rpc.PopenSession"))
                  .exception(),
              HasSubstr("'rpc.PopenSession' is not offered"));
}

TEST_F(SessionTest, EndsTellWhy) {
  SessionThread polite(functions_);
  polite.send(FrameBuilder(RequestCode::kShutdown).frame());
  EXPECT_EQ(polite.finish(), SessionEnd::kShutdown);
  SessionThread gone(functions_);
  gone.initialize();
  EXPECT_EQ(gone.finish(), SessionEnd::kDisconnected);
  SessionThread cut(functions_);
  cut.send("\x10\0\0");
  EXPECT_EQ(cut.finish(), SessionEnd::kBroken);
}

TEST_F(SessionTest, ProgressTellsWhatIsBeingDone) {
  SessionThread session(functions_);
  session.initialize();
  session.ask(call(session, "echo").codes({kTypeNull}));
  EXPECT_EQ(session.progress().doing(), "the function echo");
  EXPECT_GE(session.progress().requests(), 3u);
}

TEST_F(SessionTest, AttributesOfDevices) {
  SessionThread session(functions_);
  session.initialize();
  const auto attribute = [&](std::int32_t device, std::int64_t kind) {
    return session.ask(FrameBuilder(RequestCode::kDevGetAttr)
                           .codes({kTypeDevice, kTypeInt})
                           .device(device)
                           .number(kind));
  };
  AnswerParts exists = attribute(kDLMetal, 0);
  exists.code();
  exists.codes();
  EXPECT_EQ(exists.number<std::int64_t>(), 0);
  AnswerParts cpus = attribute(kDLCPU, 7);
  cpus.code();
  ASSERT_TRUE(has_elements(cpus.codes(), {kTypeInt}));
  EXPECT_GE(cpus.number<std::int64_t>(), 1);
  AnswerParts warps = attribute(kDLCPU, 2);
  warps.code();
  EXPECT_TRUE(has_elements(warps.codes(), {kTypeNull}));
}

}  // namespace
}  // namespace run_model::rpc
