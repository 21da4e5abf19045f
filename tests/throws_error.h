// EXPECT_TRUE(throws_error([&] { … }, ErrorKind::kFormat, "truncated")).
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include <run_model/error.h>

namespace run_model {

inline testing::AssertionResult throws_error_when_called(
    void (*call)(const void*), const void* callable, ErrorKind kind,
    std::initializer_list<std::string_view> texts) {
  const auto number = [](ErrorKind k) { return std::to_string(static_cast<int>(k)); };
  std::string found = "throws no run_model::Error";
  try {
    call(callable);
  } catch (const Error& error) {
    const std::string message = error.what();
    bool matches = error.kind() == kind;
    for (const std::string_view text : texts) {
      matches = matches && message.find(text) != std::string::npos;
    }
    if (matches) return testing::AssertionSuccess();
    found = "throws kind " + number(error.kind()) + ": " + message;
  }
  auto failure = testing::AssertionFailure() << found << "\nwhere kind " << number(kind) << " with";
  for (const std::string_view text : texts) failure << " \"" << text << '"';
  return failure << " is expected";
}

// Whether the call throws Error of that kind with a message that contains each of the texts. No
// matcher and no std::function: those take long to compile at each of the hundreds of places where
// this is used.
template <typename Callable>
testing::AssertionResult throws_error(const Callable& callable, ErrorKind kind,
                                      std::initializer_list<std::string_view> texts) {
  const auto call = [](const void* it) { (*static_cast<const Callable*>(it))(); };
  return throws_error_when_called(call, &callable, kind, texts);
}

template <typename Callable>
testing::AssertionResult throws_error(const Callable& callable, ErrorKind kind,
                                      std::string_view text) {
  return throws_error(callable, kind, {text});
}

}  // namespace run_model
