#include "run_model/run_model/measure/measure_progress.h"

#include <cstdio>
#include <string>

namespace run_model {
namespace {

// Back to the start of the line, and clear it (ECMA-48).
constexpr char kClear[] = "\r\x1b[K";
constexpr std::chrono::milliseconds kPause(250);

}  // namespace

MeasureProgress::~MeasureProgress() {
  if (shown_) std::fputs(kClear, stderr);
}

void MeasureProgress::show(std::string_view what, std::size_t done, std::size_t all,
                           double milliseconds) {
  if (!wanted_) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < kPause) return;
  last_ = now;
  shown_ = true;
  std::string line = std::string(what) + " " + std::to_string(done);
  if (all != 0) line += " of " + std::to_string(all);
  std::fprintf(stderr, "%s%s, last %.3f ms", kClear, line.c_str(), milliseconds);
}

}  // namespace run_model
