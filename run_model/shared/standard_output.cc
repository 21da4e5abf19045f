#include "run_model/shared/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>

namespace run_model {

void write_standard_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorKind::kFile,
                  std::string("cannot write to standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace run_model
