#include "run_model/check_zoo/progress.h"

#include <unistd.h>

#include <cstdio>

namespace run_model {
namespace {

// Back to the start of the line, and clear it (ECMA-48).
constexpr char kClear[] = "\r\x1b[K";
// A longer line would wrap on narrow terminals, and only its last part could be cleared.
constexpr std::size_t kMaxLine = 78;

}  // namespace

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (!shown_.empty()) std::fputs(kClear, stderr);
}

void ProgressLine::show(const PoolProgress& progress) {
  if (!terminal_) return;
  std::string line =
      "[" + std::to_string(progress.done) + "/" + std::to_string(progress.all) + "] ";
  if (progress.failed > 0) line += std::to_string(progress.failed) + " failed, ";
  line += progress.current;
  if (line.size() > kMaxLine) line.resize(kMaxLine);
  if (line == shown_) return;
  shown_ = line;
  std::fprintf(stderr, "%s%s", kClear, line.c_str());
}

}  // namespace run_model
