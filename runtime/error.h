// The one exception type of run_model's libraries, and the exit codes that its programs document.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace run_model {

// What kind of thing went wrong. The numeric value is the exit code of the programs.
enum class ErrorCode : int {
  kInternal = 1,      // a defect of run_model itself
  kUsage = 2,         // flags or arguments that make no sense
  kFile = 3,          // a file is missing, unreadable or cannot be written
  kFormat = 4,        // a file is not what it claims to be: truncated, damaged, of another format
  kIncompatible = 5,  // an artifact for another CPU, ABI, C library or compiler generation
  kMismatch = 6,      // pieces that are each well-formed but do not fit together
  kImage = 7,         // a picture that cannot be decoded or is unreasonably large
  kModel = 8,         // the model failed while running, or gave NaN or infinity
};

// "file malformed" and the like: the words that help texts use for a code.
std::string_view error_code_name(ErrorCode code);

// Thrown by every library function that can fail. what() is one sentence: which file or argument,
// what was found, what was expected; followed by the hint, if any, after "; ".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, const std::string& hint = "")
      : std::runtime_error(hint.empty() ? message : message + "; " + hint), code_(code) {}

  ErrorCode code() const { return code_; }
  int exit_code() const { return static_cast<int>(code_); }

 private:
  ErrorCode code_;
};

}  // namespace run_model
