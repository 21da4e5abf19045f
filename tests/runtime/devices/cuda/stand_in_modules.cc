// Code, its functions, and launches.
#include "tests/runtime/devices/cuda/stand_in_state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace stand_in {
namespace {

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

// A fatbin's parts may be compressed, so its kernels are those that were emulated. That they are in
// it is for the caller to see: whoever asks for another one does not get it.
int load_fatbin(const std::string& function, LoadedModule& module) {
  for (const EmulatedKernel* each = state().emulated; each != nullptr && each->name != nullptr;
       ++each) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = each->name;
    kernel->parameters.assign(each->parameter_bytes, each->parameter_bytes + each->parameters);
    kernel->has_parameters = true;
    kernel->emulated = each;
    module.kernels[kernel->name] = std::move(kernel);
  }
  return module.kernels.empty() ? reject(function, "a fatbin without emulated kernels") : kOk;
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

EXPORTED int cuModuleLoadDataEx(LoadedModule** module, const void* image, unsigned options,
                                const int* names, void** values) {
  const auto* bytes = static_cast<const char*>(image);
  const bool cubin = std::string_view(bytes, 4) == "\177ELF";
  const bool fatbin = std::string_view(bytes, 4) == "\120\355\125\272";
  const int entered = enter_context("cuModuleLoadDataEx", cubin    ? "cubin"
                                                          : fatbin ? "fatbin"
                                                                   : "ptx");
  if (entered != kOk) return entered;
  if (options != 2 || names[0] != 5 || names[1] != 6) {
    return reject("cuModuleLoadDataEx", "options");
  }
  auto loaded = std::make_unique<LoadedModule>();
  if (!cubin && !fatbin) loaded->image = bytes;
  const int result = cubin    ? load_cubin(*loaded, bytes)
                     : fatbin ? load_fatbin("cuModuleLoadDataEx", *loaded)
                              : load_ptx("cuModuleLoadDataEx", *loaded);
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
  const EmulatedKernel* emulated = function->emulated;
  return enqueue("cuLaunchKernel", stream, [=, name = function->name] {
    if (emulated != nullptr && !emulated->launch(values.data(), sizes.data())) {
      complain("cuLaunchKernel " + name + ": not all threads of a group come to a barrier");
    }
    const auto work = state().kernels.find(name);
    if (work != state().kernels.end()) work->second(values.data(), sizes.data(), shared);
  });
}

}  // namespace stand_in
