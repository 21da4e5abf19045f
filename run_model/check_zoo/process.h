// A child process whose standard output and error are read without waiting for them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace run_model {

// Ends with its parent and when the object goes.
class ChildProcess {
 public:
  // Runs `command` (found in PATH), or without one calls `body` in a copy of this process, whose
  // result is its exit code. Only while this process has one thread. Throws Error(kInternal) when
  // the system refuses.
  ChildProcess(const std::vector<std::string>& command, const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // To poll for; -1 once it has reached its end.
  int output_fd() const { return output_; }
  int error_fd() const { return error_; }

  // Reads what there is. The output's complete lines come out in order.
  std::vector<std::string> read_output();
  void read_error();

  // The last of what it wrote to standard error.
  const std::string& error_tail() const { return error_tail_; }

  // Both streams have ended.
  bool silent() const { return output_ < 0 && error_ < 0; }

  void kill();

  // Waits for its end. "" for the exit code 0; else "exited with code 3" or "was ended by signal 11
  // (Segmentation fault)".
  std::string wait();

 private:
  int wait_for_status();

  pid_t pid_ = -1;
  int output_ = -1;
  int error_ = -1;
  std::string line_;  // not complete yet
  std::string error_tail_;
};

}  // namespace run_model
