// What the stand-in for NVIDIA's driver knows, and what all its functions begin with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/runtime/devices/cuda/emulated_kernel.h"
#include "tests/runtime/devices/cuda/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace stand_in {

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kNoMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kInvalidContext = 201;
constexpr int kNoBinary = 209;
constexpr int kUnsupportedPtx = 222;
constexpr int kUnknownName = 500;
constexpr int kIllegalAddress = 700;
constexpr std::uint64_t kAlignment = 256;
// Behind each piece of memory, to see what is written there.
constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xa7;
// No number that tests pass as a scalar is as large as an address.
constexpr std::uint64_t kLeastAddress = std::uint64_t{1} << 32;
constexpr std::array<int, 3> kBlockLimits = {1024, 1024, 64};
constexpr std::array<int, 3> kGridLimits = {2147483647, 65535, 65535};
constexpr int kThreadsPerBlock = 1024;
constexpr int kSharedPerBlock = 48 << 10;
constexpr int kSharedOptIn = 99 << 10;

struct Kernel {
  std::string name;
  std::vector<std::size_t> parameters;  // sizes; of PTX only
  bool has_parameters = false;
  int dynamic_shared = kSharedPerBlock;
  const EmulatedKernel* emulated = nullptr;
};

struct LoadedModule {
  std::string image;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

using Work = std::function<void()>;

struct Stream {
  std::vector<Work> waiting;
  bool capturing = false;
  std::vector<Work> captured;
};

struct Graph {
  std::vector<Work> work;
};

struct EventState {
  bool recorded = false;
  bool passed = false;
  double at = 0;
};

struct State {
  StandInGpu gpu;
  std::ostringstream log;
  std::ostringstream problems;
  std::string text;
  std::map<std::string, int> failures;
  int sticky = kOk;
  std::map<std::string, StandInKernel> kernels;
  const EmulatedKernel* emulated = nullptr;  // of the file that RUN_MODEL_EMULATED_KERNELS names
  int retained = 0;
  std::vector<void*> current;
  char context = 0;
  std::map<std::uint64_t, std::size_t> memory;
  std::map<std::uint64_t, void*> freed;  // kept, so that no address comes twice
  std::map<void*, std::size_t> pinned;
  std::set<Stream*> streams;
  std::set<EventState*> events;
  std::set<LoadedModule*> modules;
  std::set<Graph*> graphs;
  std::set<Graph*> execs;
  double clock = 0;
};

State& state();
void complain(const std::string& problem);
// Notes the call, and gives what it shall fail with.
int enter(const std::string& function, const std::string& arguments = "");
// The same for what needs a current context.
int enter_context(const std::string& function, const std::string& arguments = "");
// What is wrong about a call, and what the call then gives.
int reject(const std::string& function, const std::string& problem, int result = kInvalidValue);
bool is_device_range(std::uint64_t address, std::size_t bytes);
bool is_pinned(const void* address, std::size_t bytes);
void* pointer(std::uint64_t address);
int enqueue(const std::string& function, Stream* stream, Work work);
void drain(Stream* stream);
std::string bytes_text(std::size_t bytes);

}  // namespace stand_in
