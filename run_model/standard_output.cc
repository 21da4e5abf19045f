#include "run_model/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/error.h"

namespace run_model {

void write_standard_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorCode::kFile,
                  std::string("cannot write to standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace run_model
