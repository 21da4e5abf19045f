// EXPECT_THAT([&] { … }, ThrowsError(ErrorCode::kFormat, "truncated")).
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "runtime/error.h"

namespace run_model {

// Matches a call that throws Error with that code and a message that contains `text`.
inline auto ThrowsError(ErrorCode code, const std::string& text) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::ResultOf;
  return ::testing::Throws<Error>(AllOf(
      ResultOf(
          "code", [](const Error& error) { return error.code(); }, code),
      ResultOf(
          "what", [](const Error& error) { return std::string(error.what()); }, HasSubstr(text))));
}

}  // namespace run_model
