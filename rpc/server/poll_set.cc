#include "rpc/server/poll_set.h"

#include <algorithm>

namespace run_model::rpc {
namespace {

// Longer waits are taken up anew.
constexpr std::chrono::hours kLongest{1};

}  // namespace

void PollSet::wait() {
  int milliseconds = -1;
  if (wake_ != TimePoint::max()) {
    const Clock::duration left =
        std::clamp<Clock::duration>(wake_ - Clock::now(), Clock::duration::zero(), kLongest);
    milliseconds = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }
  ::poll(entries_.data(), entries_.size(), milliseconds);
}

bool PollSet::is_ready(int fd) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [fd](const pollfd& entry) { return entry.fd == fd && entry.revents != 0; });
}

}  // namespace run_model::rpc
