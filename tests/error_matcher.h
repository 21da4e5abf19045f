// EXPECT_THAT([&] { … }, ThrowsError(ErrorKind::kFormat, "truncated")).
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>

namespace run_model {

// Matches a call that throws Error of that kind with a message that contains each of the texts. One
// class and no composed matchers: those take long to compile at each place where they are used.
class ThrowsError {
 public:
  using is_gtest_matcher = void;

  ThrowsError(ErrorKind kind, std::string text) : kind_(kind), texts_{std::move(text)} {}
  ThrowsError(ErrorKind kind, std::initializer_list<std::string> texts)
      : kind_(kind), texts_(texts) {}

  bool MatchAndExplain(const std::function<void()>& action, std::ostream* explanation) const {
    std::string found = "which throws no run_model::Error";
    bool matches = false;
    try {
      action();
    } catch (const Error& error) {
      const std::string message = error.what();
      matches = error.kind() == kind_;
      for (const std::string& text : texts_) matches &= message.find(text) != std::string::npos;
      found = "which throws kind " + number(error.kind()) + ": " + message;
    }
    if (explanation != nullptr) *explanation << found;
    return matches;
  }

  void DescribeTo(std::ostream* stream) const {
    *stream << "throws Error of kind " << number(kind_) << " that says";
    for (const std::string& text : texts_) *stream << " \"" << text << '"';
  }
  void DescribeNegationTo(std::ostream* stream) const {
    *stream << "does not do this: ";
    DescribeTo(stream);
  }

 private:
  static std::string number(ErrorKind kind) { return std::to_string(static_cast<int>(kind)); }

  ErrorKind kind_;
  std::vector<std::string> texts_;
};

}  // namespace run_model
