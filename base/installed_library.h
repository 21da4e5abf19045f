// A shared library that this machine may have, a GPU's driver or a decoder, opened when the program
// runs.
#pragma once

#include <string>

namespace run_model {

// It stays in the process: some leave threads and handlers behind that must not lose their code.
class InstalledLibrary {
 public:
  // `oldest` is the first version that has all that is looked for: "CUDA 10.1".
  InstalledLibrary(const char* file, const char* oldest);

  // Why the library cannot be used, with the first function that was not found; empty where it can.
  const std::string& problem() const { return problem_; }

  template <typename Function>
  void find(Function*& function, const char* name) {
    find_optional(function, name);
    if (function == nullptr) note_missing(name);
  }

  template <typename Function>
  void find_optional(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name));
  }

  // For functions that the library is asked for in its own way.
  void note_missing(const char* name);

 private:
  void* address(const char* name) const;

  std::string file_;
  std::string oldest_;
  void* handle_;
  std::string problem_;
};

}  // namespace run_model
