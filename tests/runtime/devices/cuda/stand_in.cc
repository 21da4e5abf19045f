// See stand_in.h: what tests ask, and what all functions begin with.
#include "tests/runtime/devices/cuda/stand_in_state.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

namespace stand_in {

namespace {

// For whole programs, which no test can ask: RUN_MODEL_EMULATED_KERNELS is a library of kernels
// that were compiled for the CPU, and RUN_MODEL_STAND_IN_REPORT a file that is written at the end:
// all calls, and, after a line "problems", what was wrong about them.
class Program {
 public:
  explicit Program(State& state) : state_(state) {
    if (const char* path = std::getenv("RUN_MODEL_EMULATED_KERNELS")) {
      void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        complaint_ = ::dlerror();
        return;
      }
      state.emulated = static_cast<const EmulatedKernel*>(::dlsym(library, "emulated_kernels"));
      state.gpu.memory_bytes = std::uint64_t{8} << 30;
      state.gpu.static_shared_bytes = 0;
    }
  }
  ~Program() {
    const char* path = std::getenv("RUN_MODEL_STAND_IN_REPORT");
    if (path == nullptr) return;
    std::ofstream(path) << state_.log.str() << "problems\n" << complaint_ << state_.problems.str();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  State& state_;
  std::string complaint_;
};

}  // namespace

State& state() {
  static auto& one = *new State;
  static const Program program(one);
  return one;
}

void complain(const std::string& problem) { state().problems << problem << '\n'; }

int enter(const std::string& function, const std::string& arguments) {
  State& s = state();
  s.log << function << (arguments.empty() ? "" : " ") << arguments << '\n';
  if (s.sticky != kOk) return s.sticky;
  const auto failure = s.failures.find(function);
  if (failure == s.failures.end()) return kOk;
  const int result = failure->second;
  s.failures.erase(failure);
  if (result >= kIllegalAddress) s.sticky = result;
  return result;
}

int enter_context(const std::string& function, const std::string& arguments) {
  const int result = enter(function, arguments);
  if (result == kOk && state().current.empty()) {
    complain(function + ": no context is current");
    return kInvalidContext;
  }
  return result;
}

int reject(const std::string& function, const std::string& problem, int result) {
  complain(function + ": " + problem);
  return result;
}

bool is_device_range(std::uint64_t address, std::size_t bytes) {
  const auto& memory = state().memory;
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return false;
  --after;
  return address - after->first <= after->second &&
         bytes <= after->second - (address - after->first);
}

bool is_pinned(const void* address, std::size_t bytes) {
  for (const auto& [start, size] : state().pinned) {
    const auto* begin = static_cast<const char*>(start);
    const auto* at = static_cast<const char*>(address);
    if (at >= begin && at + bytes <= begin + size) return true;
  }
  return false;
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

int enqueue(const std::string& function, Stream* stream, Work work) {
  if (!state().streams.contains(stream)) return reject(function, "there is no such stream");
  (stream->capturing ? stream->captured : stream->waiting).push_back(std::move(work));
  return kOk;
}

void drain(Stream* stream) {
  std::vector<Work> work;
  work.swap(stream->waiting);
  for (const Work& one : work) {
    state().clock += 0.5;
    one();
  }
}

std::string bytes_text(std::size_t bytes) { return "bytes=" + std::to_string(bytes); }

EXPORTED void stand_in_reset(const StandInGpu* gpu) {
  State& s = state();
  for (const auto& [address, bytes] : s.memory) std::free(pointer(address));
  for (const auto& [address, memory] : s.freed) std::free(memory);
  for (const auto& [memory, bytes] : s.pinned) std::free(memory);
  for (const Stream* stream : s.streams) delete stream;
  for (const EventState* event : s.events) delete event;
  for (const LoadedModule* module : s.modules) delete module;
  for (const Graph* graph : s.graphs) delete graph;
  for (const Graph* exec : s.execs) delete exec;
  s = State{};
  s.gpu = *gpu;
}

EXPORTED const char* stand_in_log() {
  state().text = state().log.str();
  return state().text.c_str();
}

EXPORTED const char* stand_in_problems() {
  state().text = state().problems.str();
  return state().text.c_str();
}

EXPORTED const char* stand_in_leaks() {
  State& s = state();
  std::ostringstream leaks;
  for (const auto& [address, bytes] : s.memory) leaks << "memory " << bytes_text(bytes) << '\n';
  for (const auto& [memory, bytes] : s.pinned) leaks << "pinned " << bytes_text(bytes) << '\n';
  const auto count = [&](const char* what, std::size_t number) {
    if (number != 0) leaks << number << ' ' << what << '\n';
  };
  count("streams", s.streams.size());
  count("events", s.events.size());
  count("modules", s.modules.size());
  count("graphs", s.graphs.size() + s.execs.size());
  count("primary contexts", static_cast<std::size_t>(s.retained));
  count("current contexts", s.current.size());
  s.text = leaks.str();
  return s.text.c_str();
}

EXPORTED void stand_in_fail(const char* function, int result) {
  state().failures[function] = result;
}

EXPORTED void stand_in_kernel(const char* name, StandInKernel kernel) {
  state().kernels[name] = kernel;
}

}  // namespace stand_in
