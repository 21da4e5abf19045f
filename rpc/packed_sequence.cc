#include "rpc/packed_sequence.h"

#include <cstring>
#include <utility>

#include <run_model/error.h>
#include "rpc/protocol.h"

namespace run_model::rpc {
namespace {

// Where copying costs more than a second piece to send.
constexpr std::size_t kLongBytes = 4096;

class AnswerWriter {
 public:
  explicit AnswerWriter(RequestCode code) { number(static_cast<std::int32_t>(code)); }

  template <typename T>
  void number(T value) {
    append(std::as_bytes(std::span(&value, 1)));
  }

  void codes(std::initializer_list<std::int32_t> codes) {
    number(static_cast<std::int32_t>(codes.size()));
    for (const std::int32_t code : codes) number(code);
  }

  // At most one of an answer's values is long, its last.
  void content(const Bytes& bytes) {
    number(static_cast<std::uint64_t>(bytes.data.size()));
    if (bytes.data.size() >= kLongBytes) {
      answer_.tail = bytes;
    } else {
      append(bytes.data);
    }
  }

  void content(const std::string& text) {
    number(static_cast<std::uint64_t>(text.size()));
    append(std::as_bytes(std::span(text)));
  }

  void device(Device device) {
    number(device.type);
    number(device.number);
  }

  void dtype(DLDataType dtype) {
    number(dtype.code);
    number(dtype.bits);
    number(dtype.lanes);
  }

  void tensor(Handle handle, const Tensor& tensor) {
    number(handle);
    device({});
    number(static_cast<std::int32_t>(tensor.shape().size()));
    dtype(tensor.dtype());
    for (const std::int64_t dimension : tensor.shape()) number(dimension);
    number(std::uint64_t{0});
  }

  Answer finish() { return std::move(answer_); }

 private:
  void append(std::span<const std::byte> bytes) {
    const std::size_t before = answer_.head.size();
    answer_.head.resize(before + bytes.size());
    if (!bytes.empty()) std::memcpy(answer_.head.data() + before, bytes.data(), bytes.size());
  }

  Answer answer_;
};

// The type code of a call's result; the handles of what it refers to are sent as opaque ones.
std::int32_t result_code(const Value& value) {
  struct Visitor {
    std::int32_t operator()(std::monostate) const { return kTypeNull; }
    std::int32_t operator()(std::int64_t) const { return kTypeInt; }
    std::int32_t operator()(double) const { return kTypeFloat; }
    std::int32_t operator()(const Bool&) const { return kTypeBool; }
    std::int32_t operator()(const std::string&) const { return kTypeString; }
    std::int32_t operator()(const Bytes&) const { return kTypeBytes; }
    std::int32_t operator()(const DLDataType&) const { return kTypeDataType; }
    std::int32_t operator()(const Device&) const { return kTypeDevice; }
    std::int32_t operator()(const OpaqueHandle&) const { return kTypeOpaqueHandle; }
    std::int32_t operator()(const TensorArgument&) const { return kTypeNDArrayHandle; }
    std::int32_t operator()(const ArrayResult&) const { return kTypeNDArrayHandle; }
    std::int32_t operator()(const FunctionPointer& function) const {
      return function != nullptr ? kTypePackedFunctionHandle : kTypeNull;
    }
    std::int32_t operator()(const std::shared_ptr<RemoteModule>& module) const {
      return module != nullptr ? kTypeModuleHandle : kTypeNull;
    }
    std::int32_t operator()(const std::shared_ptr<RemoteObject>& object) const {
      return object != nullptr ? kTypeObjectHandle : kTypeNull;
    }
  };
  return std::visit(Visitor{}, value);
}

// Writes what a value that refers to nothing consists of.
struct PlainWriter {
  AnswerWriter& writer;
  void operator()(std::monostate) const {}
  void operator()(std::int64_t value) const { writer.number(value); }
  void operator()(double value) const { writer.number(value); }
  void operator()(const Bool& value) const { writer.number(std::int64_t{value.value}); }
  void operator()(const std::string& value) const { writer.content(value); }
  void operator()(const Bytes& value) const { writer.content(value); }
  void operator()(const DLDataType& value) const {
    writer.dtype(value);
    writer.number(std::int32_t{0});
  }
  void operator()(const Device& value) const { writer.device(value); }
  void operator()(const OpaqueHandle& value) const { writer.number(value.value); }
  template <typename T>
  void operator()(const T&) const {
    throw Error(ErrorKind::kInternal, "a handle was to be sent as a plain value");
  }
};

Handle handle_of(const Value& value, HandleTable& handles) {
  if (const auto* function = std::get_if<FunctionPointer>(&value)) return handles.add(*function);
  if (const auto* module = std::get_if<std::shared_ptr<RemoteModule>>(&value))
    return handles.add(*module);
  return handles.add(std::get<std::shared_ptr<RemoteObject>>(value));
}

DLDataType read_dtype(FrameReader& frame) {
  DLDataType dtype{};
  dtype.code = frame.number<std::uint8_t>();
  dtype.bits = frame.number<std::uint8_t>();
  dtype.lanes = frame.number<std::uint16_t>();
  return dtype;
}

Device read_device(FrameReader& frame) {
  const auto type = frame.number<std::int32_t>();
  const auto number = frame.number<std::int32_t>();
  return {type, number};
}

std::string read_text(FrameReader& frame) { return frame.text(frame.number<std::uint64_t>()); }

Bytes read_bytes(FrameReader& frame) {
  const auto length = frame.number<std::uint64_t>();
  frame.check(length);
  const auto size = static_cast<std::size_t>(length);
  const auto memory = std::make_shared_for_overwrite<std::byte[]>(size);
  frame.read({memory.get(), size});
  return {memory, {memory.get(), size}};
}

}  // namespace

TensorHeader read_tensor_header(FrameReader& frame) {
  TensorHeader header;
  header.memory = frame.number<std::uint64_t>();
  header.device = read_device(frame);
  const auto dimensions = frame.number<std::int32_t>();
  if (dimensions < 0 || dimensions > kMostDimensions) {
    throw Error(ErrorKind::kFormat, "a tensor has " + std::to_string(dimensions) +
                                        " dimensions, expected at most " +
                                        std::to_string(kMostDimensions));
  }
  header.dtype = read_dtype(frame);
  for (std::int32_t i = 0; i < dimensions; ++i)
    header.shape.push_back(frame.number<std::int64_t>());
  header.byte_offset = frame.number<std::uint64_t>();
  if (header.device.type != kDLCPU) {
    throw Error(ErrorKind::kMismatch, "a tensor is on device " +
                                          std::to_string(header.device.type) +
                                          ", but this server has only the CPU (device 1)");
  }
  if (header.dtype.bits == 0 || header.dtype.lanes == 0) {
    throw Error(ErrorKind::kFormat, "a tensor's element type has no bits or no lanes");
  }
  return header;
}

TensorArgument find_tensor(const TensorHeader& header, const HandleTable& handles) {
  const Tensor& memory = handles.memory(header.memory);
  const std::size_t wanted = tensor_bytes(header.shape, header.dtype);
  const std::size_t present = memory.nbytes();
  if (header.byte_offset > present || wanted > present - header.byte_offset) {
    throw Error(ErrorKind::kMismatch, "a tensor of " + std::to_string(wanted) + " bytes at byte " +
                                          std::to_string(header.byte_offset) +
                                          " does not lie within its memory of " +
                                          std::to_string(present) + " bytes");
  }
  auto* data = static_cast<std::byte*>(memory.data()) + header.byte_offset;
  return {Tensor::view(data, header.shape, header.dtype, std::make_shared<Tensor>(memory)),
          header.byte_offset};
}

SequenceReader::SequenceReader(FrameReader& frame, const HandleTable& handles)
    : frame_(frame), handles_(handles) {
  const auto count = frame.number<std::int32_t>();
  if (count < 0 || count > kMostArguments) {
    throw Error(ErrorKind::kFormat, "a request has " + std::to_string(count) +
                                        " arguments, expected at most " +
                                        std::to_string(kMostArguments));
  }
  codes_.resize(static_cast<std::size_t>(count));
  frame.read(std::as_writable_bytes(std::span(codes_)));
}

Value SequenceReader::next() {
  const std::int32_t code = codes_.at(position_++);
  switch (code) {
    case kTypeInt:
    case kTypeUInt:
      return frame_.number<std::int64_t>();
    case kTypeFloat:
      return frame_.number<double>();
    case kTypeBool:
      return Bool{frame_.number<std::int64_t>() != 0};
    case kTypeOpaqueHandle:
      return OpaqueHandle{frame_.number<std::uint64_t>()};
    case kTypeNull:
      return {};
    case kTypeDataType: {
      const DLDataType dtype = read_dtype(frame_);
      frame_.number<std::int32_t>();
      return dtype;
    }
    case kTypeDevice:
      return read_device(frame_);
    case kTypeTensorHandle:
      return find_tensor(read_tensor_header(frame_), handles_);
    case kTypeModuleHandle:
      return handles_.module(frame_.number<std::uint64_t>());
    case kTypePackedFunctionHandle:
      return handles_.function(frame_.number<std::uint64_t>());
    case kTypeObjectHandle:
    case kTypeObjectRValueReference: {
      const auto index = frame_.number<std::uint32_t>();
      if (index != kRemoteObjectIndex) {
        throw Error(ErrorKind::kMismatch,
                    "an object of type index " + std::to_string(index) +
                        " was passed, but only objects of this session can be");
      }
      return handles_.object(frame_.number<std::uint64_t>());
    }
    case kTypeString:
      return read_text(frame_);
    case kTypeBytes:
      return read_bytes(frame_);
    default:
      throw Error(ErrorKind::kFormat,
                  "an argument has the unknown type code " + std::to_string(code) +
                      ", expected one of TVM 0.8 to 0.20",
                  "TVM 0.21 and later number them differently and need another server");
  }
}

std::vector<Value> SequenceReader::rest() {
  std::vector<Value> values;
  values.reserve(size() - position_);
  while (position_ < size()) values.push_back(next());
  return values;
}

std::uint64_t SequenceReader::next_length() {
  ++position_;
  const auto length = frame_.number<std::uint64_t>();
  frame_.check(length);
  return length;
}

Answer null_answer() {
  AnswerWriter writer(RequestCode::kReturn);
  writer.codes({kTypeNull});
  return writer.finish();
}

Answer exception_answer(const std::string& message, std::int32_t text_code) {
  AnswerWriter writer(RequestCode::kException);
  writer.codes({text_code});
  writer.content(message);
  return writer.finish();
}

Answer system_answer(const Value& value) {
  AnswerWriter writer(RequestCode::kReturn);
  writer.codes({result_code(value)});
  std::visit(PlainWriter{writer}, value);
  return writer.finish();
}

Answer call_answer(const Value& value, HandleTable& handles) {
  const std::int32_t code = result_code(value);
  AnswerWriter writer(RequestCode::kReturn);
  switch (code) {
    case kTypeNDArrayHandle: {
      const auto* array = std::get_if<ArrayResult>(&value);
      const Tensor& tensor =
          array != nullptr ? array->tensor : std::get<TensorArgument>(value).tensor;
      const Handle handle = handles.add_array(tensor);
      writer.codes({kTypeInt, kTypeTensorHandle, kTypeOpaqueHandle});
      writer.number(std::int64_t{code});
      writer.tensor(handle, tensor);
      writer.number(handle);
      break;
    }
    case kTypePackedFunctionHandle:
    case kTypeModuleHandle:
    case kTypeObjectHandle:
      writer.codes({kTypeInt, kTypeOpaqueHandle});
      writer.number(std::int64_t{code});
      writer.number(handle_of(value, handles));
      break;
    case kTypeNull:
      writer.codes({kTypeInt, kTypeNull});
      writer.number(std::int64_t{code});
      break;
    default:
      writer.codes({kTypeInt, code});
      writer.number(std::int64_t{code});
      std::visit(PlainWriter{writer}, value);
  }
  return writer.finish();
}

}  // namespace run_model::rpc
