#include "runtime/devices/code/code_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/code/kernel_text.h"

namespace run_model {
namespace {

// Far above what any model has, and small enough to allocate for. CUDA takes 4 KiB of arguments.
constexpr std::uint64_t kMaxKernels = 1 << 16;
constexpr std::uint64_t kMaxKernelName = 1 << 12;
constexpr std::uint64_t kMaxArguments = 512;
constexpr std::uint64_t kMaxTags = 1024;
constexpr std::uint64_t kAnyCodeLength = std::numeric_limits<std::uint64_t>::max();

// A string's length, a count of types and one of tags.
constexpr std::size_t kLeastKernelBytes = 4 * 8;

constexpr std::uint32_t kUniformBufferFlag = 1;

struct DeviceKey {
  std::string_view key;
  DLDeviceType device;
};
constexpr std::array kDeviceKeys = {
    DeviceKey{"cuda", kDLCUDA},
    DeviceKey{"opencl", kDLOpenCL},
    DeviceKey{"vulkan", kDLVulkan},
};

constexpr std::array<std::string_view, 6> kAxes = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                                   "threadIdx.x", "threadIdx.y", "threadIdx.z"};
constexpr std::string_view kDynamicShared = "tir.use_dyn_shared_memory";

// What drivers and messages take without quoting; TVM makes such names of all others.
bool is_identifier(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string kernel_called(std::string_view name) { return "the kernel " + in_quotes(name); }

[[noreturn]] void refuse_code(const ByteReader& reader, const std::string& what,
                              const std::string& hint) {
  throw Error(ErrorKind::kIncompatible, std::string(reader.source()) + " " + what, hint);
}

// How compiled code hands arguments over: a pointer, a 64-bit integer or a double, of which the
// kernel gets what its type says.
bool can_be_passed(const DLDataType& type) {
  if (type.lanes != 1) return false;
  const bool whole = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  switch (type.code) {
    case kDLOpaqueHandle:
      return type.bits == 64;
    case kDLInt:
    case kDLUInt:
      return whole;
    case kDLFloat:
      return type.bits == 32 || type.bits == 64;
    default:
      return false;
  }
}

std::vector<DLDataType> read_argument_types(ByteReader& reader, const std::string& kernel) {
  const std::size_t count =
      reader.count(kMaxArguments, 4, "the number of arguments of " + kernel_called(kernel));
  std::vector<DLDataType> types;
  types.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteReader start = reader;
    DLDataType type{};
    type.code = reader.u8("an argument's type");
    type.bits = reader.u8("an argument's type");
    type.lanes = reader.u16("an argument's type");
    const std::string which = "argument " + std::to_string(i) + " of " + kernel_called(kernel);
    if (type.code > kDLBfloat || type.bits == 0 || type.lanes == 0) {
      start.fail(which + " is of a type that there is not: code " + std::to_string(type.code) +
                 ", " + std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) +
                 " lanes");
    }
    if (!can_be_passed(type)) {
      refuse_code(start,
                  "gives a GPU arguments that run_model cannot pass: " + which + " is " +
                      dtype_name(type) + ", expected a buffer, an integer, float32 or float64",
                  "compile the model again without such a scalar");
    }
    types.push_back(type);
  }
  return types;
}

std::vector<std::string> read_launch_tags(ByteReader& reader, const std::string& kernel) {
  const std::size_t count =
      reader.count(kMaxTags, 8, "the number of launch tags of " + kernel_called(kernel));
  std::vector<std::string> tags;
  tags.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteReader start = reader;
    std::string tag = reader.string(kMaxKernelName, "a launch tag");
    const bool axis = std::find(kAxes.begin(), kAxes.end(), tag) != kAxes.end();
    if (!axis && tag != kDynamicShared) {
      start.fail(kernel_called(kernel) + " is launched by " + in_quotes(tag) +
                 ", expected blockIdx, threadIdx or " + std::string(kDynamicShared));
    }
    if (tag == kDynamicShared && i + 1 != count) {
      start.fail(kernel_called(kernel) + " has launch tags after " + std::string(kDynamicShared) +
                 ", which is the last one");
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

std::vector<KernelInfo> read_kernels(ByteReader& reader) {
  const std::size_t count = reader.count(kMaxKernels, kLeastKernelBytes, "the number of kernels");
  std::vector<KernelInfo> kernels;
  kernels.reserve(count);
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const ByteReader start = reader;
    KernelInfo kernel;
    kernel.name = reader.string(kMaxKernelName, "a kernel's name");
    if (!is_identifier(kernel.name)) {
      start.fail(in_quotes(kernel.name) + " is no name of a kernel");
    }
    if (!names.insert(kernel.name).second) {
      start.fail(kernel_called(kernel.name) + " is there twice");
    }
    const std::string second_name = reader.string(kMaxKernelName, "a kernel's second name");
    if (!second_name.empty() && second_name != kernel.name) {
      start.fail(kernel_called(kernel.name) + " is called " + in_quotes(second_name) + " as well");
    }
    kernel.argument_types = read_argument_types(reader, kernel.name);
    kernel.launch_tags = read_launch_tags(reader, kernel.name);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

[[noreturn]] void refuse_missing(const ByteReader& start, const std::string& kernel) {
  start.fail("there is no code for " + kernel_called(kernel));
}

void read_opencl(ByteReader& reader, DeviceCode& code) {
  if (code.format != "cl") {
    refuse_code(reader,
                "was compiled for a GPU through OpenCL in the form " + in_quotes(code.format) +
                    ", expected \"cl\", the source that every OpenCL driver compiles",
                "compile the model for target \"opencl\"");
  }
  const ByteReader start = reader;
  code.data = reader.string(kAnyCodeLength, "the OpenCL code");
  if (code.data.find('\0') != code.data.npos) {
    start.fail("the OpenCL code has a zero byte, expected text");
  }
  std::set<std::string_view> pieces;
  for (const OpenClPiece& piece : split_opencl(code.data)) {
    if (!pieces.insert(piece.kernel).second) {
      start.fail("there is code for " + kernel_called(piece.kernel) + " twice");
    }
  }
  for (const KernelInfo& kernel : code.kernels) {
    if (pieces.erase(kernel.name) == 0) refuse_missing(start, kernel.name);
  }
  if (!pieces.empty()) {
    start.fail("there is code for " + kernel_called(*pieces.begin()) +
               ", which is not in the table of kernels");
  }
}

void read_cuda(ByteReader& reader, DeviceCode& code) {
  constexpr std::array<std::string_view, 3> kFormats = {"ptx", "cubin", "fatbin"};
  if (std::find(kFormats.begin(), kFormats.end(), code.format) == kFormats.end()) {
    refuse_code(reader,
                "was compiled for an NVIDIA GPU (cuda) in the form " + in_quotes(code.format) +
                    ", expected \"ptx\", \"cubin\" or \"fatbin\"",
                "compile the model for target \"cuda\"");
  }
  const ByteReader start = reader;
  code.data = reader.string(kAnyCodeLength, "the CUDA code");
  // TVM calls everything that does not begin with a slash a cubin.
  const std::string_view format = cuda_format(code.data);
  if (format.empty()) {
    start.fail("the CUDA code is neither PTX nor a cubin nor a fatbin");
  }
  code.format = format;
  for (const KernelInfo& kernel : code.kernels) {
    // The parts of a fatbin may be compressed: the driver looks.
    if ((format == "ptx" && !has_ptx_entry(code.data, kernel.name)) ||
        (format == "cubin" && !has_cubin_entry(code.data, kernel.name))) {
      refuse_missing(start, kernel.name);
    }
  }
}

void read_vulkan(ByteReader& reader, DeviceCode& code) {
  if (code.format != "vulkan") {
    refuse_code(
        reader,
        "carries Vulkan code in the form " + in_quotes(code.format) + ", expected \"vulkan\"",
        "compile the model for target \"vulkan\"");
  }
  const ByteReader start = reader;
  // A name's length, flags and a count of words.
  const std::size_t count = reader.count(kMaxKernels, 8 + 4 + 8, "the number of shaders");
  std::set<std::string> missing;
  for (const KernelInfo& kernel : code.kernels) missing.insert(kernel.name);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteReader here = reader;
    ShaderCode shader;
    shader.kernel = reader.string(kMaxKernelName, "a shader's name");
    if (missing.erase(shader.kernel) == 0) {
      here.fail("there is a shader for " + kernel_called(shader.kernel) +
                ", which has one already or is not in the table of kernels");
    }
    shader.flags = reader.u32("a shader's flags");
    if ((shader.flags & ~kUniformBufferFlag) != 0) {
      here.fail("the shader of " + kernel_called(shader.kernel) + " has flags " +
                std::to_string(shader.flags) + ", of which only the lowest is known");
    }
    const std::size_t words = reader.count(kAnyCodeLength, 4, "the number of a shader's words");
    shader.words.reserve(words);
    for (std::size_t word = 0; word < words; ++word) shader.words.push_back(reader.u32());
    const std::string problem = spirv_problem(shader.words, shader.kernel);
    if (!problem.empty()) {
      here.fail("the shader of " + kernel_called(shader.kernel) + " " + problem);
    }
    code.shaders.push_back(std::move(shader));
  }
  if (!missing.empty()) refuse_missing(start, *missing.begin());
}

const DeviceKey* find_key(std::string_view key) {
  const auto* found = std::find_if(kDeviceKeys.begin(), kDeviceKeys.end(),
                                   [&](const DeviceKey& k) { return k.key == key; });
  return found == kDeviceKeys.end() ? nullptr : found;
}

}  // namespace

bool is_device_code(std::string_view key) { return find_key(key) != nullptr; }

std::shared_ptr<const DeviceCode> read_device_code(ByteReader& reader, std::string_view key) {
  const auto code = std::make_shared<DeviceCode>();
  code->device = find_key(key)->device;
  code->format = reader.string(kMaxKernelName, "the form of the " + std::string(key) + " code");
  code->kernels = read_kernels(reader);
  switch (code->device) {
    case kDLOpenCL:
      read_opencl(reader, *code);
      break;
    case kDLVulkan:
      read_vulkan(reader, *code);
      break;
    default:
      read_cuda(reader, *code);
  }
  return code;
}

}  // namespace run_model
