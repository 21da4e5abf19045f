// Reads thousands of damaged files and demands of each: an Error of an allowed kind with a sentence
// that can be printed, or a success that the caller then checks; within bounded memory.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <run_model/error.h>

namespace run_model::corruption {

class Sweep {
 public:
  // The files are a few KB; counts in them must not be believed before the bytes are there.
  static constexpr std::size_t kLargestAllocation = 1 << 20;

  // `allowed` are the codes that damage to this kind of file may have. `name`, the file's name as
  // given to the reader, must be in every message.
  Sweep(std::initializer_list<ErrorKind> allowed, std::string name,
        std::size_t largest_allocation = kLargestAllocation);

  // Expects that something was refused at all: a sweep that accepts everything tests nothing.
  ~Sweep();
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  // Calls `read` and returns whether it succeeded. Anything but an allowed Error is a test failure.
  bool accepts(const std::string& description, const std::function<void()>& read);

  std::size_t accepted() const { return accepted_; }
  std::size_t refused() const;

 private:
  void check_message(const std::string& description, const std::string& message) const;
  void check_allocation(const std::string& description) const;

  std::vector<ErrorKind> allowed_;
  std::string name_;
  std::size_t largest_allocation_;
  std::size_t accepted_ = 0;
  std::map<ErrorKind, std::size_t> refused_;
};

// The largest single block that operator new was asked for since the last reset.
std::size_t largest_allocation();
void reset_largest_allocation();

}  // namespace run_model::corruption
