#include "run_model/shared/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace run_model {
namespace {

// Back to the start of the line, and clear it (ECMA-48).
constexpr char kClear[] = "\r\x1b[K";
// A longer line would wrap on narrow terminals, and only its last part could be cleared.
constexpr std::size_t kMaxLine = 78;

}  // namespace

ProgressLine::ProgressLine(bool wanted, Clock::duration pause)
    : shows_(wanted && ::isatty(STDERR_FILENO) == 1), pause_(pause) {}

ProgressLine::~ProgressLine() {
  if (!shown_.empty()) std::fputs(kClear, stderr);
}

bool ProgressLine::is_due() const { return shows_ && Clock::now() - last_ >= pause_; }

void ProgressLine::show(std::string line) {
  if (!is_due()) return;
  last_ = Clock::now();
  if (line.size() > kMaxLine) line.resize(kMaxLine);
  if (line == shown_) return;
  shown_ = std::move(line);
  std::fprintf(stderr, "%s%s", kClear, shown_.c_str());
}

}  // namespace run_model
