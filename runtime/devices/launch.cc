#include "runtime/devices/launch.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/float16.h"

namespace run_model {
namespace {

constexpr std::string_view kGroups = "blockIdx.";
constexpr std::string_view kThreads = "threadIdx.";
constexpr std::string_view kShared = "tir.use_dyn_shared_memory";
constexpr std::string_view kDimensions = "xyz";

bool is_integer(DLDataType type) { return type.code == kDLInt || type.code == kDLUInt; }

// Whether the number is what it was after the kernel has seen only `type`'s bits of it. Compiled
// code passes unsigned numbers of 64 bits as signed ones.
bool fits(std::int64_t value, DLDataType type) {
  if (type.bits >= 64) return true;
  if (type.code == kDLUInt) return value >= 0 && value < std::int64_t{1} << type.bits;
  const std::int64_t limit = std::int64_t{1} << (type.bits - 1);
  return value >= -limit && value < limit;
}

std::string triple(const std::array<std::uint64_t, 3>& numbers) {
  return std::to_string(numbers[0]) + " x " + std::to_string(numbers[1]) + " x " +
         std::to_string(numbers[2]);
}

template <typename T>
void put(ScalarBytes& scalar, T value) {
  std::memcpy(scalar.bytes.data(), &value, sizeof(value));
  scalar.size = sizeof(value);
}

}  // namespace

LaunchReader::LaunchReader(const KernelInfo& kernel) : kernel_(kernel) {
  for (const std::string& tag : kernel.launch_tags) {
    const auto dimension_after = [&](std::string_view prefix) {
      return tag.size() == prefix.size() + 1 && tag.starts_with(prefix)
                 ? kDimensions.find(tag.back())
                 : std::string_view::npos;
    };
    if (tag == kShared) {
      tags_.push_back({Tag::Kind::kShared, 0});
    } else if (const std::size_t group = dimension_after(kGroups); group != kDimensions.npos) {
      tags_.push_back({Tag::Kind::kGroups, group});
    } else if (const std::size_t thread = dimension_after(kThreads); thread != kDimensions.npos) {
      tags_.push_back({Tag::Kind::kThreads, thread});
    } else {
      throw Error(ErrorKind::kIncompatible,
                  "the kernel " + in_quotes(kernel.name) + " is launched with " + in_quotes(tag) +
                      ", which run_model does not know",
                  "compile with TVM 0.8 to 0.19 and without virtual threads of other kinds");
    }
  }
}

LaunchSize LaunchReader::read(std::span<const PackedValue> values, const int* type_codes) const {
  const std::size_t own = num_arguments();
  if (values.size() != own + tags_.size()) {
    fail("is called with " + std::to_string(values.size()) + " arguments, expected " +
         std::to_string(own) + " and " + std::to_string(tags_.size()) + " launch parameters");
  }
  for (std::size_t i = 0; i < own; ++i) check_argument(i, values[i], type_codes[i]);
  LaunchSize size;
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    const std::int64_t value = values[own + i].v_int64;
    if (type_codes[own + i] != kTypeInt || value < 0) {
      fail("is called with a launch parameter " + in_quotes(kernel_.launch_tags[i]) +
           " that is no size");
    }
    // Of a tensor without elements there are no groups; the kernel then guards itself.
    const auto number = static_cast<std::uint64_t>(value);
    if (tags_[i].kind == Tag::Kind::kShared) {
      size.dynamic_shared_bytes = number;
    } else if (number > 0) {
      auto& sizes = tags_[i].kind == Tag::Kind::kGroups ? size.groups : size.threads;
      sizes[tags_[i].dimension] = number;
    }
  }
  return size;
}

void LaunchReader::check_argument(std::size_t index, const PackedValue& value,
                                  int type_code) const {
  const DLDataType type = kernel_.argument_types[index];
  bool good = false;
  if (type.code == kDLOpaqueHandle) {
    good = type_code == kTypeOpaqueHandle || type_code == kTypeNull;
  } else if (is_integer(type)) {
    good = type_code == kTypeInt && type.bits <= 64 && fits(value.v_int64, type);
  } else if (type.code == kDLFloat) {
    good = type_code == kTypeFloat && (type.bits == 16 || type.bits == 32 || type.bits == 64);
  }
  if (good && type.lanes <= 1) return;
  const std::string what = type.code == kDLOpaqueHandle ? "a buffer" : dtype_name(type);
  fail("takes " + what + " as argument " + std::to_string(index) +
       ", but is called with a value of type code " + std::to_string(type_code) +
       (type_code == kTypeInt ? ": " + std::to_string(value.v_int64) : ""));
}

void LaunchReader::fail(const std::string& problem) const {
  throw Error(ErrorKind::kModel, "kernel " + in_quotes(kernel_.name) + " " + problem);
}

void check_launch(const KernelInfo& kernel, const LaunchSize& size, const DeviceInfo& info,
                  const std::string& device) {
  const auto refuse = [&](const std::string& asked, const std::string& possible) {
    throw Error(ErrorKind::kIncompatible,
                "kernel " + in_quotes(kernel.name) + " asks for " + asked + ", but device " +
                    device + " has at most " + possible,
                "compile the model for this device, with smaller groups of threads");
  };
  std::uint64_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (info.group_size[i] != 0 && size.threads[i] > info.group_size[i]) {
      refuse("groups of " + triple(size.threads) + " threads", triple(info.group_size));
    }
    if (info.grid_size[i] != 0 && size.groups[i] > info.grid_size[i]) {
      refuse(triple(size.groups) + " groups of threads", triple(info.grid_size));
    }
    if (__builtin_mul_overflow(threads, size.threads[i], &threads)) {
      threads = std::numeric_limits<std::uint64_t>::max();
    }
  }
  if (info.threads_per_group != 0 && threads > info.threads_per_group) {
    refuse("groups of " + std::to_string(threads) + " threads",
           std::to_string(info.threads_per_group));
  }
  if (info.shared_memory_bytes != 0 && size.dynamic_shared_bytes > info.shared_memory_bytes) {
    refuse(std::to_string(size.dynamic_shared_bytes) + " bytes of shared memory",
           std::to_string(info.shared_memory_bytes));
  }
}

void check_registers(const KernelInfo& kernel, const LaunchSize& size, std::uint64_t most_threads,
                     const std::string& device) {
  const std::uint64_t threads = size.threads[0] * size.threads[1] * size.threads[2];
  if (most_threads == 0 || threads <= most_threads) return;
  throw Error(ErrorKind::kIncompatible,
              "the kernel " + in_quotes(kernel.name) + " is launched with " +
                  std::to_string(threads) + " threads a group, but by its registers device " +
                  device + " can have " + std::to_string(most_threads),
              "compile the model with other schedules, or for this device");
}

ScalarBytes scalar_bytes(const PackedValue& value, DLDataType type) {
  ScalarBytes scalar;
  if (type.code == kDLFloat) {
    if (type.bits == 16) {
      put(scalar, double_to_half(value.v_float64));
    } else if (type.bits == 32) {
      put(scalar, static_cast<float>(value.v_float64));
    } else {
      put(scalar, value.v_float64);
    }
  } else if (type.bits <= 8) {
    put(scalar, static_cast<std::int8_t>(value.v_int64));
  } else if (type.bits <= 16) {
    put(scalar, static_cast<std::int16_t>(value.v_int64));
  } else if (type.bits <= 32) {
    put(scalar, static_cast<std::int32_t>(value.v_int64));
  } else {
    put(scalar, value.v_int64);
  }
  return scalar;
}

}  // namespace run_model
