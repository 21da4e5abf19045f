#include "rpc/packed_sequence.h"

#include <cstring>
#include <utility>

#include <run_model/error.h>
#include "rpc/device_buffer.h"
#include "rpc/protocol.h"

namespace run_model::rpc {
namespace {

// Where copying costs more than a second piece to send.
constexpr std::size_t kLongBytes = 4096;

class AnswerWriter {
 public:
  AnswerWriter(RequestCode code, Encoding encoding, std::int32_t values) : encoding_(encoding) {
    put(answer_.head, static_cast<std::int32_t>(code));
    put(answer_.head, values);
  }

  Encoding encoding() const { return encoding_; }

  // Before each value.
  void begin(WireType type) {
    put(encoding_ == Encoding::kTvm08 ? answer_.head : values_, type_code(encoding_, type));
  }

  template <typename T>
  void number(T value) {
    put(values_, value);
  }

  // At most one of an answer's values is long, its last.
  void content(const Bytes& bytes) {
    number(static_cast<std::uint64_t>(bytes.data.size()));
    if (bytes.data.size() >= kLongBytes) {
      answer_.tail = bytes;
    } else {
      append(values_, bytes.data);
    }
  }

  void content(const std::string& text) {
    number(static_cast<std::uint64_t>(text.size()));
    append(values_, std::as_bytes(std::span(text)));
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

  Answer finish() {
    append(answer_.head, values_);
    return std::move(answer_);
  }

 private:
  static void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
    const std::size_t before = to.size();
    to.resize(before + bytes.size());
    if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
  }

  template <typename T>
  static void put(std::vector<std::byte>& to, T value) {
    append(to, std::as_bytes(std::span(&value, 1)));
  }

  Encoding encoding_;
  Answer answer_;  // its head: the codes that come before all values
  std::vector<std::byte> values_;
};

// What a call's result is; the handles of what it refers to are sent as opaque ones.
WireType result_type(const Value& value) {
  struct Visitor {
    WireType operator()(std::monostate) const { return WireType::kNull; }
    WireType operator()(std::int64_t) const { return WireType::kInteger; }
    WireType operator()(double) const { return WireType::kReal; }
    WireType operator()(const Bool&) const { return WireType::kBool; }
    WireType operator()(const std::string&) const { return WireType::kText; }
    WireType operator()(const Bytes&) const { return WireType::kBytes; }
    WireType operator()(const DLDataType&) const { return WireType::kDataType; }
    WireType operator()(const Device&) const { return WireType::kDevice; }
    WireType operator()(const OpaqueHandle&) const { return WireType::kOpaque; }
    WireType operator()(const TensorArgument&) const { return WireType::kArray; }
    WireType operator()(const ArrayResult&) const { return WireType::kArray; }
    WireType operator()(const FunctionPointer& function) const {
      return function != nullptr ? WireType::kFunction : WireType::kNull;
    }
    WireType operator()(const std::shared_ptr<RemoteModule>& module) const {
      return module != nullptr ? WireType::kModule : WireType::kNull;
    }
    WireType operator()(const std::shared_ptr<RemoteObject>& object) const {
      return object != nullptr ? WireType::kObject : WireType::kNull;
    }
  };
  return std::visit(Visitor{}, value);
}

// Writes what a value that refers to nothing consists of.
struct PlainWriter {
  AnswerWriter& writer;
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

void write_plain(AnswerWriter& writer, const Value& value) {
  const WireType type = result_type(value);
  writer.begin(type);
  // A null function is a null too.
  if (type != WireType::kNull) std::visit(PlainWriter{writer}, value);
}

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
  dl_device(header.device);
  if (header.dtype.bits == 0 || header.dtype.lanes == 0) {
    throw Error(ErrorKind::kFormat, "a tensor's element type has no bits or no lanes");
  }
  return header;
}

TensorArgument find_tensor(const TensorHeader& header, const HandleTable& handles) {
  const std::size_t wanted = tensor_bytes(header.shape, header.dtype);
  const auto on_device = is_gpu(header.device) ? handles.device_memory(header.memory) : nullptr;
  const std::size_t present =
      on_device != nullptr ? on_device->bytes() : handles.memory(header.memory).nbytes();
  if (header.byte_offset > present || wanted > present - header.byte_offset) {
    throw Error(ErrorKind::kMismatch, "a tensor of " + std::to_string(wanted) + " bytes at byte " +
                                          std::to_string(header.byte_offset) +
                                          " does not lie within its memory of " +
                                          std::to_string(present) + " bytes");
  }
  if (on_device != nullptr) {
    const DLDevice device = on_device->device();
    if (static_cast<int>(device.device_type) != header.device.type ||
        device.device_id != header.device.number) {
      throw Error(ErrorKind::kMismatch, "a tensor's memory is not on the device that it names");
    }
    return {Tensor::view(nullptr, header.shape, header.dtype, nullptr), header.byte_offset,
            on_device};
  }
  const Tensor& memory = handles.memory(header.memory);
  auto* data = static_cast<std::byte*>(memory.data()) + header.byte_offset;
  return {Tensor::view(data, header.shape, header.dtype, std::make_shared<Tensor>(memory)),
          header.byte_offset, nullptr};
}

SequenceReader::SequenceReader(FrameReader& frame, const HandleTable& handles, Encoding encoding)
    : frame_(frame), handles_(handles), encoding_(encoding) {
  const auto count = frame.number<std::int32_t>();
  if (count < 0 || count > kMostArguments) {
    throw Error(ErrorKind::kFormat, "a request has " + std::to_string(count) +
                                        " arguments, expected at most " +
                                        std::to_string(kMostArguments));
  }
  size_ = static_cast<std::size_t>(count);
  if (encoding_ == Encoding::kTvm021) return;
  codes_.resize(size_);
  frame.read(std::as_writable_bytes(std::span(codes_)));
}

WireType SequenceReader::take() {
  const bool codes_first = encoding_ == Encoding::kTvm08;
  const std::int32_t code = codes_first ? codes_.at(position_) : frame_.number<std::int32_t>();
  ++position_;
  const std::optional<WireType> type = wire_type(encoding_, code);
  if (!type) {
    throw Error(ErrorKind::kFormat, "an argument has the unknown type code " +
                                        std::to_string(code) + ", expected one of TVM " +
                                        (codes_first ? "0.8 to 0.20" : "0.21 or later"));
  }
  if (*type != WireType::kObject) return *type;
  const auto index = frame_.number<std::uint32_t>();
  if (!codes_first) return object_type(index);
  if (index != kRemoteObjectIndex) {
    throw Error(ErrorKind::kMismatch, "an object of type index " + std::to_string(index) +
                                          " was passed, but only objects of this session can be");
  }
  return *type;
}

Value SequenceReader::next() {
  switch (take()) {
    case WireType::kInteger:
      return frame_.number<std::int64_t>();
    case WireType::kReal:
      return frame_.number<double>();
    case WireType::kBool:
      return Bool{frame_.number<std::int64_t>() != 0};
    case WireType::kOpaque:
      return OpaqueHandle{frame_.number<std::uint64_t>()};
    case WireType::kDataType: {
      const DLDataType dtype = read_dtype(frame_);
      frame_.number<std::int32_t>();
      return dtype;
    }
    case WireType::kDevice:
      return read_device(frame_);
    case WireType::kTensor:
      return find_tensor(read_tensor_header(frame_), handles_);
    case WireType::kModule:
      return handles_.module(frame_.number<std::uint64_t>());
    case WireType::kFunction:
      return handles_.function(frame_.number<std::uint64_t>());
    case WireType::kObject:
      return handles_.object(frame_.number<std::uint64_t>());
    case WireType::kText:
      return read_text(frame_);
    case WireType::kBytes:
      return read_bytes(frame_);
    case WireType::kNull:
    case WireType::kArray:
      break;
  }
  return {};
}

std::vector<Value> SequenceReader::rest() {
  std::vector<Value> values;
  // Of those whose codes have come: memory follows what has come.
  values.reserve(codes_.empty() ? 0 : size_ - position_);
  while (position_ < size_) values.push_back(next());
  return values;
}

Answer empty_answer() { return AnswerWriter(RequestCode::kReturn, Encoding::kTvm08, 0).finish(); }

Answer null_answer(Encoding encoding) { return system_answer({}, encoding); }

Answer exception_answer(const std::string& message, Encoding encoding) {
  AnswerWriter writer(RequestCode::kException, encoding, 1);
  writer.begin(WireType::kText);
  writer.content(message);
  return writer.finish();
}

Answer system_answer(const Value& value, Encoding encoding) {
  AnswerWriter writer(RequestCode::kReturn, encoding, 1);
  write_plain(writer, value);
  return writer.finish();
}

Answer call_answer(const Value& value, HandleTable& handles, Encoding encoding) {
  const WireType type = result_type(value);
  AnswerWriter writer(RequestCode::kReturn, encoding, type == WireType::kArray ? 3 : 2);
  writer.begin(WireType::kInteger);
  writer.number(std::int64_t{result_code(encoding, type)});
  switch (type) {
    case WireType::kArray: {
      const auto* array = std::get_if<ArrayResult>(&value);
      const Tensor& tensor =
          array != nullptr ? array->tensor : std::get<TensorArgument>(value).tensor;
      const Handle handle = handles.add_array(tensor);
      writer.begin(WireType::kTensor);
      writer.tensor(handle, tensor);
      writer.begin(WireType::kOpaque);
      writer.number(handle);
      break;
    }
    case WireType::kFunction:
    case WireType::kModule:
    case WireType::kObject:
      writer.begin(WireType::kOpaque);
      writer.number(handle_of(value, handles));
      break;
    default:
      write_plain(writer, value);
  }
  return writer.finish();
}

}  // namespace run_model::rpc
