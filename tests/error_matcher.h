// EXPECT_THAT([&] { … }, ThrowsError(ErrorKind::kFormat, "truncated")).
#pragma once

#include <gmock/gmock.h>

#include <string>

#include <run_model/error.h>

namespace run_model {

// Matches a call that throws Error with that code and a message that contains `text`.
inline auto ThrowsError(ErrorKind code, const std::string& text) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::ResultOf;
  return ::testing::Throws<Error>(AllOf(
      ResultOf(
          "kind", [](const Error& error) { return error.kind(); }, code),
      ResultOf(
          "what", [](const Error& error) { return std::string(error.what()); }, HasSubstr(text))));
}

}  // namespace run_model
