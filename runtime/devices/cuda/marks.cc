#include "runtime/devices/cuda/marks.h"

#include <run_model/error.h>

namespace run_model::cuda {

std::uint64_t Marks::mark() {
  if (in_use_ == events_.size()) {
    Event event = nullptr;
    gpu_.check(gpu_.api().event_create(&event, 0), "making an event");
    events_.push_back(event);
  }
  gpu_.check(gpu_.api().event_record(events_[in_use_], gpu_.stream()), "recording an event");
  return forgotten_ + in_use_++;
}

Event Marks::event(std::uint64_t mark) const {
  if (mark < forgotten_ || mark - forgotten_ >= in_use_) {
    throw Error(ErrorKind::kInternal, "a time was asked for that was forgotten");
  }
  return events_[static_cast<std::size_t>(mark - forgotten_)];
}

double Marks::seconds_between(std::uint64_t first, std::uint64_t second) {
  constexpr double kMillisecondsPerSecond = 1000;
  Event begin = event(first);
  Event end = event(second);
  gpu_.check(gpu_.api().event_wait(end), "computing");
  float milliseconds = 0;
  gpu_.check(gpu_.api().event_elapsed(&milliseconds, begin, end), "taking the time");
  return static_cast<double>(milliseconds) / kMillisecondsPerSecond;
}

void Marks::forget() {
  forgotten_ += in_use_;
  in_use_ = 0;
}

void Marks::destroy() noexcept {
  for (Event event : events_) gpu_.api().event_destroy(event);
  events_.clear();
}

}  // namespace run_model::cuda
