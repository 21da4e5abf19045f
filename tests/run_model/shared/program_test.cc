#include "run_model/shared/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace run_model {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Failure {
  int exit_code = 0;
  std::string said;
};

template <typename Exception>
Failure failure(const Exception& exception) {
  testing::internal::CaptureStderr();
  const int code = run_reporting_failures("program", false, [&]() -> int { throw exception; });
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(Program, EveryExceptionIsASentenceAndAnExitCode) {
  EXPECT_EQ(failure(Error(ErrorKind::kFile, "it is gone", "look")).said,
            "program: it is gone; look\n");
  EXPECT_EQ(failure(Error(ErrorKind::kFile, "it is gone")).exit_code, 3);
  EXPECT_THAT(failure(std::bad_alloc()).said, HasSubstr("not enough memory"));
  EXPECT_EQ(failure(std::runtime_error("odd")).said, "program: unexpected: odd\n");
  EXPECT_EQ(failure(std::runtime_error("odd")).exit_code, 1);
}

// As std::thread throws it where a container's limit of processes is reached.
TEST(Program, AThreadThatTheSystemRefusesIsNamed) {
  const auto system_error = [](std::errc code) {
    return std::system_error(std::make_error_code(code));
  };
  const Failure refused = failure(system_error(std::errc::resource_unavailable_try_again));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.said, HasSubstr("another thread"));
  EXPECT_THAT(refused.said, HasSubstr("--threads"));
  EXPECT_THAT(failure(system_error(std::errc::io_error)).said,
              StartsWith("program: unexpected: Input/output error"));
}

}  // namespace
}  // namespace run_model
