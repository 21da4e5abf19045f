// What the fuzzer would do, in small and always the same: sessions that a client garbles. Passing
// means that each ends, and under the sanitizers that nothing was touched that should not be.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "rpc/functions/builtin.h"
#include "tests/rpc/frame_client.h"
#include "tests/rpc/fuzz/seeds.h"
#include "tests/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace run_model::rpc {
namespace {

constexpr int kRounds = 400;  // of each seed

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

std::string garble(std::string bytes, std::mt19937& random) {
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      default:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32)));
    }
  }
  return bytes;
}

TEST(SessionFuzzTest, GarbledSessionsEnd) {
  std::mt19937 random(1);
  int sessions = 0;
  for (const std::string& seed : session_seeds()) {
    run(seed);
    for (int i = 0; i < kRounds; ++i, ++sessions) run(garble(seed, random));
  }
  EXPECT_EQ(sessions, kRounds * static_cast<int>(session_seeds().size()));
}

TEST(SessionFuzzTest, SessionsThatEndAnywhereEnd) {
  for (const std::string& seed : session_seeds()) {
    for (std::size_t length = 0; length < seed.size(); length += 3) run(seed.substr(0, length));
  }
  SUCCEED();
}

// The seeds are sessions that go well, else garbling them would test little.
TEST(SessionFuzzTest, SeedsAreSessionsWithoutErrors) {
  Registry functions;
  const TemporaryFolder folder;
  SessionFolder files(folder.path(), 1 << 16);
  add_file_functions(functions, files);
  functions.add("echo", [](const Arguments& arguments) { return arguments[0]; });
  functions.add("array", [](const Arguments& arguments) -> Value {
    return ArrayResult{arguments.tensor(0).tensor};
  });
  functions.add("function", [](const Arguments&) -> Value {
    return make_function("inner", [](const Arguments&) { return Value(); });
  });
  for (const std::string& seed : session_seeds()) {
    SessionThread session(functions);
    session.send(seed);
    session.stop_sending();
    int answers = 0;
    try {
      while (true) {
        EXPECT_EQ(session.receive().exception(), "");
        ++answers;
      }
    } catch (const std::runtime_error&) {
      // The session has said goodbye.
    }
    EXPECT_GT(answers, 0);
    EXPECT_EQ(session.finish(), SessionEnd::kShutdown);
  }
}

}  // namespace
}  // namespace run_model::rpc
