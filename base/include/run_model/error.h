// The one exception type of run_model's libraries.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace run_model {

// What kind of thing went wrong.
enum class ErrorKind {
  kInternal,      // a defect of run_model itself
  kUsage,         // flags or arguments that make no sense
  kFile,          // a file is missing, unreadable or cannot be written
  kFormat,        // a file is not what it claims to be: truncated, damaged, of another format
  kIncompatible,  // an artifact for another CPU, ABI, C library or compiler generation
  kMismatch,      // pieces that are each well-formed but do not fit together
  kImage,         // a picture that cannot be decoded or is unreasonably large
  kModel,         // the model failed while running, or gave NaN or infinity
};

// "file malformed" and the like: the words that help texts use for a kind.
std::string_view error_kind_name(ErrorKind kind);

// Thrown by every library function that can fail. what() is one sentence: which file or argument,
// what was found, what was expected; followed by the hint, if any, after "; ".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string_view message, std::string_view hint = "");

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace run_model
