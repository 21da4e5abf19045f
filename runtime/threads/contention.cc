#include "runtime/threads/contention.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/system_file.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::int64_t kBetweenLooks = 2'000;

// 0 while there is none. Only who ends a span looks at whether it is over, so that the question
// costs no look at the clock.
std::atomic<std::int64_t> contended_until{0};

// The calling thread's times, out of /proc: nothing where the kernel was built without them.
class TimesFile {
 public:
  std::optional<ThreadTimes> read() {
    // In a child the file is still that of the parent's thread.
    if (const pid_t process = ::getpid(); process != process_) {
      process_ = process;
      // Not open_to_read(), which allocates: in a child another thread may still hold the lock.
      file_ = OwnedFd(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    }
    std::array<char, 96> text{};
    const ssize_t size = file_ ? ::pread(file_.get(), text.data(), text.size(), 0) : 0;
    if (size <= 0) return std::nullopt;
    std::string_view rest(text.data(), static_cast<std::size_t>(size));
    std::array<std::int64_t, 3> numbers{};  // nanoseconds, nanoseconds, turns
    for (std::int64_t& number : numbers) {
      const std::optional<std::int64_t> taken = take_number<std::int64_t>(rest);
      if (!taken) return std::nullopt;
      number = *taken;
      if (rest.starts_with(' ')) rest.remove_prefix(1);
    }
    if (numbers[0] == 0) return std::nullopt;  // switched off
    return ThreadTimes{numbers[0] / 1000, numbers[1] / 1000, numbers[2]};
  }

 private:
  pid_t process_ = -1;
  OwnedFd file_;
};

struct Looks {
  std::int64_t last = 0;
  TimesFile times;
  WaitingShare waiting;
  Preemptions preemptions;
};

// Whether the calling thread has to share its CPU.
bool shares_cpu(Looks& looks, std::int64_t now) {
  if (const std::optional<ThreadTimes> times = looks.times.read()) {
    return looks.waiting.go_on(*times);
  }
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 && looks.preemptions.go_on(now, usage.ru_nivcsw);
}

std::int64_t microseconds_since_boot() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_boot).count();
}

}  // namespace

bool cpus_are_contended() { return contended_until.load(std::memory_order_relaxed) != 0; }

void look_for_contention() {
  thread_local Looks looks;
  const std::int64_t now = microseconds_since_boot();
  if (now - looks.last < kBetweenLooks) return;
  looks.last = now;
  if (shares_cpu(looks, now)) {
    note_contention();
    return;
  }
  std::int64_t until = contended_until.load(std::memory_order_relaxed);
  if (until != 0 && until < now) {
    contended_until.compare_exchange_strong(until, 0, std::memory_order_relaxed);
  }
}

bool would_contend(std::string_view loadavg, int threads, long cpus) {
  // "0.20 0.18 0.12 1/80 11206": of 80 threads one has a CPU or waits for one, the calling one.
  const std::size_t slash = loadavg.find('/');
  if (slash == loadavg.npos) return false;
  const std::size_t space = loadavg.rfind(' ', slash);
  std::string_view running = loadavg.substr(space == loadavg.npos ? 0 : space + 1);
  const std::optional<int> count = take_number<int>(running);
  return count && long{*count} - 1 + threads > cpus;
}

void look_for_contention(int threads) {
  if (would_contend(first_line("/proc/loadavg"), threads, ::sysconf(_SC_NPROCESSORS_ONLN))) {
    note_contention();
  }
}

void note_contention(std::chrono::microseconds span) {
  const std::int64_t until = microseconds_since_boot() + span.count();
  if (until > contended_until.load(std::memory_order_relaxed)) {
    contended_until.store(until, std::memory_order_relaxed);
  }
}

}  // namespace run_model
