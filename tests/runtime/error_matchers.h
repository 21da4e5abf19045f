// Checks on the one exception type of the libraries.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include <run_model/error.h>

namespace run_model::testing_errors {

// The Error that `action` throws; a test failure and nothing when it throws none.
inline std::optional<Error> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no run_model::Error was thrown";
  return std::nullopt;
}

// `action` throws an Error of that code whose text contains every one of `parts`.
inline void expect_error(const std::function<void()>& action, ErrorKind code,
                         std::initializer_list<std::string> parts) {
  const std::optional<Error> error = error_of(action);
  if (!error) {
    return;
  }
  EXPECT_EQ(error->kind(), code) << error->what();
  for (const std::string& part : parts) {
    EXPECT_THAT(error->what(), testing::HasSubstr(part));
  }
}

}  // namespace run_model::testing_errors
