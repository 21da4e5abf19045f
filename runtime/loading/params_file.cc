#include "runtime/loading/params_file.h"

#include <unordered_set>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/relax/ffi_abi.h"

namespace run_model {
namespace {

constexpr std::uint64_t kTensorMagic = 0xDD5E40F096B4A13F;

// Far above any real model; they bound what a damaged count can make us allocate.
constexpr std::uint64_t kMaxParams = 1 << 20;
constexpr std::uint64_t kMaxNameLength = 1 << 16;
constexpr std::int32_t kMaxDimensions = 32;

// Fields of a tensor in front of its dimensions, and a name's length field.
constexpr std::size_t kTensorHeaderBytes = 8 + 8 + 4 + 4 + 4 + 4;
constexpr std::size_t kLengthBytes = 8;

DLDataType read_dtype(ByteReader& reader, bool* bool_is_a_type) {
  DLDataType dtype{};
  dtype.code = reader.u8("an element type's code");
  dtype.bits = reader.u8("an element type's width");
  dtype.lanes = reader.u16("an element type's lanes");
  if (bool_is_a_type != nullptr && same_dtype(dtype, kFfiBoolType)) {
    *bool_is_a_type = true;
    return {kDLUInt, 1, 1};
  }
  bool known = dtype.code <= kDLBfloat && dtype.code != kDLOpaqueHandle;
  if (!known || dtype.bits == 0 || dtype.bits > 64 || dtype.lanes != 1) {
    reader.fail("element type " + dtype_name(dtype) + " is none that a parameter can have");
  }
  return dtype;
}

}  // namespace

Param read_tensor(ByteReader& reader, const std::string& name, bool* bool_is_a_type) {
  Param param;
  param.name = name;
  std::uint64_t magic = reader.u64("a tensor's magic number");
  if (magic != kTensorMagic)
    reader.fail("there is no tensor where parameter " + in_quotes(name) + " should be");
  reader.u64("a tensor's reserved field");
  std::int32_t device_type = reader.i32("a tensor's device type");
  reader.i32("a tensor's device number");
  if (device_type != kDLCPU) {
    reader.fail("parameter " + in_quotes(name) + " is stored for device type " +
                std::to_string(device_type) + ", expected 1 (CPU)");
  }
  std::int32_t ndim = reader.i32("a tensor's number of dimensions");
  if (ndim < 0 || ndim > kMaxDimensions) {
    reader.fail("parameter " + in_quotes(name) + " has " + std::to_string(ndim) + " dimensions");
  }
  param.dtype = read_dtype(reader, bool_is_a_type);
  for (std::int32_t i = 0; i < ndim; ++i) param.shape.push_back(reader.i64("a dimension"));
  std::int64_t stored = reader.i64("a tensor's size");
  std::size_t bytes = 0;
  try {
    bytes = tensor_bytes(param.shape, param.dtype);
  } catch (const Error& error) {
    reader.fail("parameter " + in_quotes(name) + ": " + error.what());
  }
  if (stored < 0 || static_cast<std::uint64_t>(stored) != bytes) {
    reader.fail("parameter " + in_quotes(name) + " says that it has " + std::to_string(stored) +
                " bytes, but a " + dtype_name(param.dtype) + " tensor of shape " +
                shape_name(param.shape) + " has " + std::to_string(bytes));
  }
  param.data = reader.bytes(bytes, "the data of parameter " + in_quotes(name));
  return param;
}

std::vector<Param> read_tensors(ByteReader& reader, std::span<const std::string> names) {
  std::vector<Param> params;
  std::unordered_set<std::string_view> seen;
  params.reserve(names.size());
  for (const std::string& name : names) {
    Param param = read_tensor(reader, name);
    if (name.starts_with(kPaddingPrefix)) continue;
    if (!seen.insert(name).second) reader.fail("parameter " + in_quotes(name) + " is there twice");
    params.push_back(std::move(param));
  }
  return params;
}

std::vector<Param> parse_params(std::span<const std::byte> bytes, const std::string& source) {
  ByteReader reader(bytes, source);
  if (bytes.size() < sizeof(kParamsMagic) || reader.u64("the magic number") != kParamsMagic) {
    throw Error(ErrorKind::kFormat,
                source + " is no parameter file of TVM: it does not start with its magic number",
                "check that the library, graph and parameter files were not swapped");
  }
  reader.u64("the reserved field");
  std::size_t count = reader.count(kMaxParams, kLengthBytes, "the number of names");
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) names.push_back(reader.string(kMaxNameLength, "a name"));
  std::size_t tensors = reader.count(kMaxParams, kTensorHeaderBytes, "the number of tensors");
  if (tensors != count) {
    reader.fail("it names " + std::to_string(count) + " parameters but holds " +
                std::to_string(tensors));
  }
  std::vector<Param> params = read_tensors(reader, names);
  if (!reader.at_end()) {
    reader.fail(std::to_string(reader.remaining()) +
                " bytes are left over after the last parameter");
  }
  return params;
}

}  // namespace run_model
