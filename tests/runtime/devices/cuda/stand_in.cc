#include "tests/runtime/devices/cuda/stand_in.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

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

State& state() {
  static auto& one = *new State;
  return one;
}

void complain(const std::string& problem) { state().problems << problem << '\n'; }

// Notes the call, and gives what it shall fail with.
int enter(const std::string& function, const std::string& arguments = "") {
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

// The same for what needs a current context.
int enter_context(const std::string& function, const std::string& arguments = "") {
  const int result = enter(function, arguments);
  if (result == kOk && state().current.empty()) {
    complain(function + ": no context is current");
    return kInvalidContext;
  }
  return result;
}

int reject(const std::string& function, const std::string& problem, int result = kInvalidValue) {
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

// The sizes of a PTX entry's parameters, in order.
std::vector<std::size_t> parameters_of(const std::string& ptx, std::size_t entry) {
  const std::size_t open = ptx.find('(', entry);
  const std::size_t close = ptx.find(')', open);
  std::vector<std::size_t> sizes;
  for (std::size_t at = ptx.find(".param", open); at < close; at = ptx.find(".param", at + 1)) {
    const std::size_t type = ptx.find('.', at + 1);
    sizes.push_back(std::strtoul(ptx.c_str() + type + 2, nullptr, 10) / 8);
  }
  return sizes;
}

int load_ptx(const std::string& function, LoadedModule& module) {
  State& s = state();
  const std::string& ptx = module.image;
  const double version = std::strtod(ptx.c_str() + ptx.rfind(".version") + 8, nullptr);
  const long target = std::strtol(ptx.c_str() + ptx.find("sm_") + 3, nullptr, 10);
  if (version > 8.4 && s.gpu.driver_version <= 12040) return kUnsupportedPtx;
  if (target > s.gpu.major * 10 + s.gpu.minor) return kNoBinary;
  constexpr std::string_view kEntry = ".entry ";
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at + 1)) {
    const std::size_t name = at + kEntry.size();
    auto kernel = std::make_unique<Kernel>();
    kernel->name = ptx.substr(name, ptx.find_first_of("( \n", name) - name);
    kernel->parameters = parameters_of(ptx, at);
    kernel->has_parameters = true;
    module.kernels[kernel->name] = std::move(kernel);
  }
  return module.kernels.empty() ? reject(function, "PTX without an entry", kInvalidImage) : kOk;
}

// The section .text.NAME of each kernel.
int load_cubin(LoadedModule& module, const char* image) {
  // Section headers end an ELF file of nvcc and NVRTC; where they are is in its header.
  std::uint64_t sections = 0;
  std::uint16_t count = 0;
  std::memcpy(&sections, image + 40, sizeof(sections));
  std::memcpy(&count, image + 60, sizeof(count));
  module.image.assign(image, sections + std::size_t{64} * count);
  if (static_cast<unsigned char>(image[48]) / 10 != state().gpu.major) return kNoBinary;
  constexpr std::string_view kText{".text."};
  for (std::size_t at = module.image.find(kText); at != std::string::npos;
       at = module.image.find(kText, at + 1)) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = module.image.c_str() + at + kText.size();
    module.kernels[kernel->name] = std::move(kernel);
  }
  return kOk;
}

void check_launch_sizes(const Kernel& kernel, const std::array<unsigned, 6>& sizes,
                        unsigned shared) {
  const State& s = state();
  const std::string where = "cuLaunchKernel " + kernel.name;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto grid = static_cast<unsigned>(kGridLimits[i]);
    const auto block = static_cast<unsigned>(kBlockLimits[i]);
    if (sizes[i] == 0 || sizes[i] > grid)
      complain(where + ": the grid is " + std::to_string(sizes[i]));
    if (sizes[i + 3] == 0 || sizes[i + 3] > block) {
      complain(where + ": the block is " + std::to_string(sizes[i + 3]));
    }
  }
  const unsigned threads = sizes[3] * sizes[4] * sizes[5];
  if (threads > static_cast<unsigned>(std::min(kThreadsPerBlock, s.gpu.kernel_threads))) {
    complain(where + ": " + std::to_string(threads) + " threads in a block");
  }
  if (shared > static_cast<unsigned>(kernel.dynamic_shared)) {
    complain(where + ": " + std::to_string(shared) +
             " bytes of dynamic shared memory, allowed are " +
             std::to_string(kernel.dynamic_shared));
  }
}

// The CUDA driver reads arguments in the call.
std::vector<std::uint64_t> arguments_of(const Kernel& kernel, void** arguments) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (arguments == nullptr || arguments[i] == nullptr) {
      complain("cuLaunchKernel " + kernel.name + ": argument " + std::to_string(i) + " is missing");
      return {};
    }
    std::uint64_t value = 0;
    std::memcpy(&value, arguments[i], kernel.parameters[i]);
    if (kernel.parameters[i] == 8 && value >= kLeastAddress && !is_device_range(value, 1)) {
      complain("cuLaunchKernel " + kernel.name + ": argument " + std::to_string(i) +
               " is no live memory");
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

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

EXPORTED int cuInit(unsigned flags) {
  const int result = enter("cuInit");
  return flags == 0 ? result : reject("cuInit", "flags");
}

EXPORTED int cuDriverGetVersion(int* version) {
  *version = state().gpu.driver_version;
  return kOk;
}

EXPORTED int cuGetErrorName(int result, const char** name) {
  switch (result) {
    case kNoMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kOk;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kOk;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

EXPORTED int cuGetErrorString(int result, const char** text) {
  *text = result == kIllegalAddress ? "an illegal memory access was encountered" : "stand-in";
  return kOk;
}

EXPORTED int cuDeviceGetCount(int* count) {
  *count = state().gpu.devices;
  return kOk;
}

EXPORTED int cuDeviceGet(int* device, int index) {
  if (index < 0 || index >= state().gpu.devices) return reject("cuDeviceGet", "index");
  *device = index;
  return kOk;
}

EXPORTED int cuDeviceGetName(char* name, int bytes, int /*device*/) {
  std::strncpy(name, "Stand-in GPU", static_cast<std::size_t>(bytes));
  return kOk;
}

EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int /*device*/) {
  *bytes = state().gpu.memory_bytes;
  return kOk;
}

EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const StandInGpu& gpu = state().gpu;
  if (device < 0 || device >= gpu.devices) return kInvalidDevice;
  const std::map<int, int> values = {{1, kThreadsPerBlock},
                                     {2, kBlockLimits[0]},
                                     {3, kBlockLimits[1]},
                                     {4, kBlockLimits[2]},
                                     {5, kGridLimits[0]},
                                     {6, kGridLimits[1]},
                                     {7, kGridLimits[2]},
                                     {8, kSharedPerBlock},
                                     {10, 32},
                                     {13, 1410000},
                                     {16, 108},
                                     {75, gpu.major},
                                     {76, gpu.minor},
                                     {97, kSharedOptIn}};
  const auto found = values.find(attribute);
  if (found == values.end()) return reject("cuDeviceGetAttribute", "attribute");
  *value = found->second;
  return kOk;
}

EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  const int result = enter("cuDevicePrimaryCtxRetain", "device=" + std::to_string(device));
  if (result != kOk) return result;
  ++state().retained;
  *context = &state().context;
  return kOk;
}

EXPORTED int cuDevicePrimaryCtxRelease_v2(int /*device*/) {
  enter("cuDevicePrimaryCtxRelease_v2");
  if (state().retained == 0) return reject("cuDevicePrimaryCtxRelease_v2", "not retained");
  --state().retained;
  return kOk;
}

EXPORTED int cuCtxGetCurrent(void** context) {
  *context = state().current.empty() ? nullptr : state().current.back();
  return kOk;
}

EXPORTED int cuCtxPushCurrent_v2(void* context) {
  if (context != &state().context || state().retained == 0) {
    return reject("cuCtxPushCurrent_v2", "there is no such context", kInvalidContext);
  }
  state().current.push_back(context);
  return kOk;
}

EXPORTED int cuCtxPopCurrent_v2(void** context) {
  if (state().current.empty()) return reject("cuCtxPopCurrent_v2", "nothing is current");
  *context = state().current.back();
  state().current.pop_back();
  return kOk;
}

EXPORTED int cuStreamCreate(Stream** stream, unsigned flags) {
  const int result = enter_context("cuStreamCreate", "flags=" + std::to_string(flags));
  if (result != kOk) return result;
  *stream = *state().streams.insert(new Stream).first;
  return kOk;
}

EXPORTED int cuStreamDestroy_v2(Stream* stream) {
  enter("cuStreamDestroy_v2");
  if (state().streams.erase(stream) == 0) return reject("cuStreamDestroy_v2", "no such stream");
  delete stream;
  return kOk;
}

EXPORTED int cuStreamSynchronize(Stream* stream) {
  const int result = enter_context("cuStreamSynchronize");
  if (result != kOk) return result;
  if (!state().streams.contains(stream)) return reject("cuStreamSynchronize", "no such stream");
  if (stream->capturing) return reject("cuStreamSynchronize", "the stream is capturing", 900);
  drain(stream);
  return kOk;
}

EXPORTED int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  const int result = enter_context("cuStreamBeginCapture_v2", "mode=" + std::to_string(mode));
  if (result != kOk) return result;
  if (stream->capturing) return reject("cuStreamBeginCapture_v2", "the stream is capturing");
  stream->capturing = true;
  return kOk;
}

EXPORTED int cuStreamEndCapture(Stream* stream, Graph** graph) {
  const int result = enter_context("cuStreamEndCapture");
  if (!stream->capturing) return reject("cuStreamEndCapture", "the stream is not capturing");
  stream->capturing = false;
  if (result != kOk) return result;
  *graph = new Graph{std::move(stream->captured)};
  stream->captured.clear();
  state().graphs.insert(*graph);
  return kOk;
}

EXPORTED int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long flags) {
  const int result = enter_context("cuGraphInstantiateWithFlags");
  if (result != kOk) return result;
  if (!state().graphs.contains(graph) || flags != 0) {
    return reject("cuGraphInstantiateWithFlags", "no such graph");
  }
  *exec = new Graph(*graph);
  state().execs.insert(*exec);
  return kOk;
}

EXPORTED int cuGraphLaunch(Graph* exec, Stream* stream) {
  const int result = enter_context("cuGraphLaunch");
  if (result != kOk) return result;
  if (!state().execs.contains(exec)) return reject("cuGraphLaunch", "no such graph");
  for (const Work& work : exec->work) {
    if (const int queued = enqueue("cuGraphLaunch", stream, work); queued != kOk) return queued;
  }
  return kOk;
}

EXPORTED int cuGraphExecDestroy(Graph* exec) {
  enter("cuGraphExecDestroy");
  if (state().execs.erase(exec) == 0) return reject("cuGraphExecDestroy", "no such graph");
  delete exec;
  return kOk;
}

EXPORTED int cuGraphDestroy(Graph* graph) {
  enter("cuGraphDestroy");
  if (state().graphs.erase(graph) == 0) return reject("cuGraphDestroy", "no such graph");
  delete graph;
  return kOk;
}

EXPORTED int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  State& s = state();
  const int result = enter_context("cuMemAlloc_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (bytes == 0) return reject("cuMemAlloc_v2", "no bytes");
  std::size_t used = bytes;
  for (const auto& [start, size] : s.memory) used += size;
  if (used > s.gpu.memory_bytes) return kNoMemory;
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(memory, 0xcd, bytes);
  *address = reinterpret_cast<std::uint64_t>(memory);
  s.memory[*address] = bytes;
  return kOk;
}

EXPORTED int cuMemFree_v2(std::uint64_t address) {
  State& s = state();
  enter_context("cuMemFree_v2");
  if (s.memory.erase(address) == 0) return reject("cuMemFree_v2", "no such memory");
  for (const Stream* stream : s.streams) {
    if (!stream->waiting.empty()) complain("cuMemFree_v2: work is waiting");
  }
  s.freed[address] = pointer(address);
  return kOk;
}

EXPORTED int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes,
                             Stream* stream) {
  const int result = enter_context("cuMemsetD8Async", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes)) return reject("cuMemsetD8Async", "out of bounds");
  return enqueue("cuMemsetD8Async", stream, [=] { std::memset(pointer(to), value, bytes); });
}

EXPORTED int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes,
                                  Stream* stream) {
  const int result = enter_context("cuMemcpyHtoDAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes)) return reject("cuMemcpyHtoDAsync_v2", "out of bounds");
  if (is_pinned(from, bytes)) {
    return enqueue("cuMemcpyHtoDAsync_v2", stream, [=] { std::memcpy(pointer(to), from, bytes); });
  }
  const std::string staged(static_cast<const char*>(from), bytes);
  return enqueue("cuMemcpyHtoDAsync_v2", stream,
                 [=] { std::memcpy(pointer(to), staged.data(), bytes); });
}

EXPORTED int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, Stream* stream) {
  const int result = enter_context("cuMemcpyDtoHAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(from, bytes)) return reject("cuMemcpyDtoHAsync_v2", "out of bounds");
  return enqueue("cuMemcpyDtoHAsync_v2", stream, [=] { std::memcpy(to, pointer(from), bytes); });
}

EXPORTED int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                                  Stream* stream) {
  const int result = enter_context("cuMemcpyDtoDAsync_v2", bytes_text(bytes));
  if (result != kOk) return result;
  if (!is_device_range(to, bytes) || !is_device_range(from, bytes)) {
    return reject("cuMemcpyDtoDAsync_v2", "out of bounds");
  }
  if (to < from + bytes && from < to + bytes) return reject("cuMemcpyDtoDAsync_v2", "overlap");
  return enqueue("cuMemcpyDtoDAsync_v2", stream,
                 [=] { std::memcpy(pointer(to), pointer(from), bytes); });
}

EXPORTED int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  const int result = enter_context("cuMemHostAlloc", bytes_text(bytes));
  if (result != kOk) return result;
  if (bytes == 0 || flags != 1) return reject("cuMemHostAlloc", "no bytes, or flags");
  constexpr std::size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  state().pinned[*memory] = bytes;
  return kOk;
}

EXPORTED int cuMemFreeHost(void* memory) {
  enter_context("cuMemFreeHost");
  if (state().pinned.erase(memory) == 0) return reject("cuMemFreeHost", "no such memory");
  std::free(memory);
  return kOk;
}

EXPORTED int cuModuleLoadDataEx(LoadedModule** module, const void* image, unsigned options,
                                const int* names, void** values) {
  const auto* bytes = static_cast<const char*>(image);
  const bool cubin = std::memcmp(bytes,
                                 "\x7f"
                                 "ELF",
                                 4) == 0;
  const int entered = enter_context("cuModuleLoadDataEx", cubin ? "cubin" : "ptx");
  if (entered != kOk) return entered;
  if (options != 2 || names[0] != 5 || names[1] != 6) {
    return reject("cuModuleLoadDataEx", "options");
  }
  auto loaded = std::make_unique<LoadedModule>();
  if (!cubin) loaded->image = bytes;
  const int result = cubin ? load_cubin(*loaded, bytes) : load_ptx("cuModuleLoadDataEx", *loaded);
  if (result == kUnsupportedPtx) {
    std::strncpy(static_cast<char*>(values[0]), "ptxas fatal: Unsupported .version",
                 reinterpret_cast<std::size_t>(values[1]));
  }
  if (result != kOk) return result;
  *module = *state().modules.insert(loaded.release()).first;
  return kOk;
}

EXPORTED int cuModuleUnload(LoadedModule* module) {
  enter_context("cuModuleUnload");
  if (state().modules.erase(module) == 0) return reject("cuModuleUnload", "no such module");
  delete module;
  return kOk;
}

EXPORTED int cuModuleGetFunction(Kernel** function, LoadedModule* module, const char* name) {
  const int result = enter_context("cuModuleGetFunction", name);
  if (result != kOk) return result;
  if (!state().modules.contains(module)) return reject("cuModuleGetFunction", "no such module");
  const auto found = module->kernels.find(name);
  if (found == module->kernels.end()) return kUnknownName;
  *function = found->second.get();
  return kOk;
}

EXPORTED int cuFuncGetAttribute(int* value, int attribute, Kernel* function) {
  switch (attribute) {
    case 0:
      *value = state().gpu.kernel_threads;
      return kOk;
    case 1:
      *value = state().gpu.static_shared_bytes;
      return kOk;
    case 8:
      *value = function->dynamic_shared;
      return kOk;
    default:
      return reject("cuFuncGetAttribute", "attribute");
  }
}

EXPORTED int cuFuncSetAttribute(Kernel* function, int attribute, int value) {
  const int result =
      enter_context("cuFuncSetAttribute", std::to_string(attribute) + "=" + std::to_string(value));
  if (result != kOk) return result;
  if (attribute != 8 || value < 0 || value + state().gpu.static_shared_bytes > kSharedOptIn) {
    return reject("cuFuncSetAttribute", "value");
  }
  function->dynamic_shared = value;
  return kOk;
}

EXPORTED int cuLaunchKernel(Kernel* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            Stream* stream, void** arguments, void** extra) {
  const std::array<unsigned, 6> sizes = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  bool known = false;
  for (const LoadedModule* module : state().modules) {
    for (const auto& [name, kernel] : module->kernels) known |= kernel.get() == function;
  }
  if (!known) return reject("cuLaunchKernel", "no such function");
  std::ostringstream text;
  text << function->name << " grid=" << grid_x << 'x' << grid_y << 'x' << grid_z
       << " block=" << block_x << 'x' << block_y << 'x' << block_z << " shared=" << shared;
  const int result = enter_context("cuLaunchKernel", text.str());
  if (result != kOk) return result;
  if (extra != nullptr) return reject("cuLaunchKernel", "arguments in two ways");
  check_launch_sizes(*function, sizes, shared);
  const std::vector<std::uint64_t> values = arguments_of(*function, arguments);
  return enqueue("cuLaunchKernel", stream, [=, name = function->name] {
    const auto work = state().kernels.find(name);
    if (work != state().kernels.end()) work->second(values.data(), sizes.data(), shared);
  });
}

EXPORTED int cuEventCreate(EventState** event, unsigned flags) {
  const int result = enter_context("cuEventCreate");
  if (result != kOk) return result;
  if (flags != 0) return reject("cuEventCreate", "an event without time");
  *event = *state().events.insert(new EventState).first;
  return kOk;
}

EXPORTED int cuEventDestroy_v2(EventState* event) {
  enter("cuEventDestroy_v2");
  if (state().events.erase(event) == 0) return reject("cuEventDestroy_v2", "no such event");
  delete event;
  return kOk;
}

EXPORTED int cuEventRecord(EventState* event, Stream* stream) {
  const int result = enter_context("cuEventRecord");
  if (result != kOk) return result;
  if (!state().events.contains(event)) return reject("cuEventRecord", "no such event");
  event->recorded = true;
  event->passed = false;
  return enqueue("cuEventRecord", stream, [=] {
    event->passed = true;
    event->at = state().clock;
  });
}

EXPORTED int cuEventSynchronize(EventState* event) {
  const int result = enter_context("cuEventSynchronize");
  if (result != kOk) return result;
  if (!state().events.contains(event) || !event->recorded) {
    return reject("cuEventSynchronize", "no such event");
  }
  for (Stream* stream : state().streams) drain(stream);
  return kOk;
}

EXPORTED int cuEventElapsedTime(float* milliseconds, EventState* first, EventState* second) {
  const int result = enter_context("cuEventElapsedTime");
  if (result != kOk) return result;
  if (!first->passed || !second->passed) return reject("cuEventElapsedTime", "not passed", 600);
  *milliseconds = static_cast<float>(second->at - first->at);
  return kOk;
}
