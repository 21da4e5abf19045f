#include <run_model/rpc/session.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include <run_model/rpc/function.h>
#include "base/text.h"
#include "rpc/connection.h"
#include "rpc/device_attributes.h"
#include "rpc/device_buffer.h"
#include "rpc/encoding.h"
#include "rpc/handle_table.h"
#include "rpc/packed_sequence.h"
#include "rpc/protocol.h"

namespace run_model::rpc {
namespace {

// Of a file's name or a version, in bytes.
constexpr std::uint64_t kMostNameBytes = 4096;

// A client sends all of a request before it looks for an answer, so that the rest of one that is
// refused has to be read. What announces more than any client would send is no request.
constexpr std::uint64_t kMostSkippedBytes = std::uint64_t{1} << 36;

// What messages call requests that have no function's name.
const std::string kConstructor = "session constructor";
const std::string kFindFunction = "get_function";
const std::string kAllocation = "allocation";
const std::string kSystemRequest = "system request";

class Session {
 public:
  Session(int socket, const SessionOptions& options)
      : options_(options),
        connection_(socket, options.limits.spin_microseconds),
        handles_(options.limits.handles),
        progress_(options.progress != nullptr ? *options.progress : own_progress_) {}

  SessionEnd serve() {
    try {
      while (true) {
        progress_.set_phase(SessionPhase::kWaiting);
        if (!connection_.wait()) return SessionEnd::kDisconnected;
        progress_.begin_request();
        progress_.set_phase(SessionPhase::kReceiving);
        const SessionEnd* const end = serve_frame();
        if (end != nullptr) return *end;
      }
    } catch (const Disconnected& gone) {
      log(gone.what());
      return SessionEnd::kBroken;
    }
  }

 private:
  // Null to go on.
  const SessionEnd* serve_frame() {
    static constexpr SessionEnd kShutdown = SessionEnd::kShutdown;
    std::uint64_t bytes = 0;
    connection_.read(std::as_writable_bytes(std::span(&bytes, 1)));
    if (bytes == 0) return nullptr;
    FrameReader frame(connection_, bytes);
    try {
      const auto code = static_cast<RequestCode>(frame.number<std::int32_t>());
      if (code == RequestCode::kShutdown) return &kShutdown;
      serve_request(code, frame);
    } catch (const Disconnected&) {
      throw;
    } catch (const std::bad_alloc&) {
      fail(frame, "there is not enough memory for this request within the session's limit");
    } catch (const std::exception& error) {
      fail(frame, error.what());
    }
    return nullptr;
  }

  void fail(FrameReader& frame, const std::string& message) {
    if (frame.left() > 0) {
      if (frame.left() > kMostSkippedBytes) {
        send(exception_answer(message, encoding_));
        throw Disconnected(message);
      }
      frame.skip_rest();
    }
    log("error: " + message);
    send(exception_answer(message, encoding_));
  }

  void serve_request(RequestCode code, FrameReader& frame) {
    if (code != RequestCode::kCopyToRemote && code != RequestCode::kCallFunc) {
      check_frame_bytes(frame.left());
    }
    if (!initialized_ && code != RequestCode::kInitServer) {
      throw Error(ErrorKind::kMismatch, "a request came before the session was initialised");
    }
    switch (code) {
      case RequestCode::kInitServer:
        return initialize(frame);
      case RequestCode::kCallFunc:
        return call_function(frame);
      case RequestCode::kCopyFromRemote:
        return copy_from(frame);
      case RequestCode::kCopyToRemote:
        return copy_to(frame);
      case RequestCode::kGetGlobalFunc:
        return find_function(frame);
      case RequestCode::kDevAllocDataWithScope:
        return allocate_tensor(frame);
      default:
        return serve_system_request(code, frame);
    }
  }

  void initialize(FrameReader& frame) {
    progress_.set_doing("the session's start");
    const auto length = frame.number<std::uint64_t>();
    if (length > kMostNameBytes) {
      throw Error(ErrorKind::kFormat,
                  "the protocol version is " + std::to_string(length) + " bytes long");
    }
    const std::string version = frame.text(length);
    const std::vector<Value> values = read_sequence(RequestCode::kInitServer, frame);
    if (initialized_) throw Error(ErrorKind::kMismatch, "the session has been initialised before");
    if (version != kProtocolVersion) {
      throw Error(ErrorKind::kMismatch, "the client speaks version " + in_quotes(version) +
                                            " of TVM's RPC protocol, this server speaks " +
                                            in_quotes(kProtocolVersion) + " (TVM 0.8 or later)");
    }
    const Arguments arguments(kConstructor, values);
    if (!values.empty() && arguments.text(0) != "rpc.LocalSession") {
      throw Error(ErrorKind::kMismatch,
                  "the session constructor " + in_quotes(arguments.text(0)) +
                      " is not offered: this server runs models itself",
                  "connect to the device that is meant directly");
    }
    initialized_ = true;
    send(empty_answer());
  }

  void call_function(FrameReader& frame) {
    const FunctionPointer function = handles_.function(frame.number<std::uint64_t>());
    progress_.set_doing("the function " + function->name());
    SequenceReader sequence(frame, handles_, encoding_);
    if (const auto* streamed = dynamic_cast<const StreamedFunction*>(function.get())) {
      return call_streamed(*streamed, frame, sequence);
    }
    check_frame_bytes(frame.left());
    const std::vector<Value> arguments = sequence.rest();
    frame.check_end();
    send(call_answer(function->call(arguments), handles_, encoding_));
  }

  void call_streamed(const StreamedFunction& function, FrameReader& frame,
                     SequenceReader& sequence) {
    const auto check = [&](bool fits) {
      if (fits) return;
      throw Error(ErrorKind::kMismatch,
                  "the function " + in_quotes(function.name()) +
                      " takes a text and bytes, but was given other arguments");
    };
    check(sequence.size() == 2 && sequence.take() == WireType::kText);
    const auto name_bytes = frame.number<std::uint64_t>();
    frame.check(name_bytes);
    if (name_bytes > kMostNameBytes) {
      throw Error(ErrorKind::kFormat,
                  "a name of " + std::to_string(name_bytes) + " bytes was given");
    }
    const std::string name = frame.text(name_bytes);
    const WireType content = sequence.take();
    check(content == WireType::kBytes || content == WireType::kText);
    const auto length = frame.number<std::uint64_t>();
    if (length != frame.left()) {
      throw Error(ErrorKind::kFormat, "an upload says it has " + std::to_string(length) +
                                          " bytes, but " + std::to_string(frame.left()) +
                                          " follow");
    }
    const Value result = function.call_streamed(
        name, length, [&frame](std::span<std::byte> into) { return frame.read_some(into); });
    log(function.name() + " " + in_quotes(name) + ", " + std::to_string(length) + " bytes");
    send(call_answer(result, handles_, encoding_));
  }

  void copy_from(FrameReader& frame) {
    progress_.set_doing("a copy from the board");
    const TensorHeader header = read_tensor_header(frame);
    const auto bytes = frame.number<std::uint64_t>();
    frame.check_end();
    const TensorArgument part = part_of(header, bytes);
    std::vector<std::byte> from_device(part.device_memory != nullptr ? bytes : 0);
    std::span<const std::byte> content = from_device;
    if (part.device_memory != nullptr) {
      part.device_memory->download(part.byte_offset, from_device);
    } else {
      content = {static_cast<const std::byte*>(part.tensor.data()), part.tensor.nbytes()};
    }
    const auto code = static_cast<std::int32_t>(RequestCode::kCopyAck);
    const std::uint64_t frame_bytes = sizeof(code) + bytes;
    std::array<std::byte, sizeof(frame_bytes) + sizeof(code)> head;
    std::memcpy(head.data(), &frame_bytes, sizeof(frame_bytes));
    std::memcpy(head.data() + sizeof(frame_bytes), &code, sizeof(code));
    progress_.set_phase(SessionPhase::kAnswering);
    connection_.write({head, content});
  }

  void copy_to(FrameReader& frame) {
    progress_.set_doing("a copy to the board");
    const TensorHeader header = read_tensor_header(frame);
    const auto bytes = frame.number<std::uint64_t>();
    if (bytes != frame.left()) {
      throw Error(ErrorKind::kFormat, "a copy says it has " + std::to_string(bytes) +
                                          " bytes, but " + std::to_string(frame.left()) +
                                          " follow");
    }
    const TensorArgument part = part_of(header, bytes);
    if (part.device_memory != nullptr) {
      copy_to_device(*part.device_memory, part.byte_offset, frame);
    } else {
      frame.read({static_cast<std::byte*>(part.tensor.data()), part.tensor.nbytes()});
    }
    send(null_answer(encoding_));
  }

  // All that is left of the frame, in pieces.
  static void copy_to_device(DeviceBuffer& memory, std::uint64_t offset, FrameReader& frame) {
    constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
    std::vector<std::byte> piece;
    while (frame.left() > 0) {
      piece.resize(static_cast<std::size_t>(std::min(frame.left(), kPiece)));
      frame.read(piece);
      memory.upload(static_cast<std::size_t>(offset), piece);
      offset += piece.size();
    }
  }

  // `bytes` of a tensor's memory from its byte offset on: tensors are copied in pieces, which move
  // the offset and leave the shape as it is.
  TensorArgument part_of(const TensorHeader& header, std::uint64_t bytes) const {
    constexpr DLDataType kByte{kDLUInt, 8, 1};
    TensorHeader part = header;
    part.dtype = kByte;
    part.shape = {static_cast<std::int64_t>(bytes)};
    return find_tensor(part, handles_);
  }

  void find_function(FrameReader& frame) {
    const std::vector<Value> values = read_sequence(RequestCode::kGetGlobalFunc, frame);
    const Arguments arguments(kFindFunction, values);
    const std::string& name = arguments.text(0);
    progress_.set_doing("looking for the function " + name);
    const FunctionPointer function =
        options_.functions != nullptr ? options_.functions->find(name) : nullptr;
    send(system_answer(OpaqueHandle{function != nullptr ? handles_.add(function) : 0}, encoding_));
  }

  void allocate_tensor(FrameReader& frame) {
    progress_.set_doing("an allocation");
    tell_encoding(RequestCode::kDevAllocDataWithScope, frame);
    SequenceReader sequence(frame, handles_, encoding_);
    if (sequence.size() != 2 || sequence.take() != WireType::kTensor) {
      throw Error(ErrorKind::kFormat, "an allocation needs a tensor and a memory scope");
    }
    // The tensor has no memory yet: it stands for a shape and an element type.
    const TensorHeader header = read_tensor_header(frame);
    const std::vector<Value> scope = sequence.rest();
    frame.check_end();
    const Arguments arguments(kAllocation, scope);
    if (!arguments.is_null(0) && !arguments.text(0).empty() && arguments.text(0) != "global") {
      throw Error(ErrorKind::kMismatch,
                  "there is no memory scope " + in_quotes(arguments.text(0)) + " here");
    }
    const Handle handle = allocate(header.device, tensor_bytes(header.shape, header.dtype));
    send(system_answer(OpaqueHandle{handle}, encoding_));
  }

  Handle allocate(const Device& device, std::uint64_t bytes) {
    if (!is_gpu(device)) return handles_.add_memory(new_memory(bytes));
    check_allocation(bytes);
    return handles_.add_memory(
        std::make_shared<DeviceBuffer>(session_device(device), static_cast<std::size_t>(bytes)));
  }

  void check_allocation(std::uint64_t bytes) const {
    if (bytes <= options_.limits.allocation_bytes) return;
    throw Error(ErrorKind::kMismatch, "memory of " + std::to_string(bytes) +
                                          " bytes is more than a session may have, which is " +
                                          std::to_string(options_.limits.allocation_bytes));
  }

  // At least one byte, so that its address is its own.
  Tensor new_memory(std::uint64_t bytes) const {
    check_allocation(bytes);
    constexpr DLDataType kByte{kDLUInt, 8, 1};
    return Tensor::empty({std::max<std::int64_t>(static_cast<std::int64_t>(bytes), 1)}, kByte);
  }

  void serve_system_request(RequestCode code, FrameReader& frame) {
    const std::vector<Value> values = read_sequence(code, frame);
    send(system_answer(system_result(code, Arguments(kSystemRequest, values)), encoding_));
  }

  Value system_result(RequestCode code, const Arguments& arguments) {
    switch (code) {
      case RequestCode::kFreeHandle:
        // Freeing nothing is allowed.
        if (arguments.is_null(0)) return {};
        if (const Handle handle = handle_in(arguments, 0); handle != 0) {
          handles_.free(handle, freed_kind(arguments));
        }
        return {};
      case RequestCode::kDevFreeData:
        dl_device(arguments.device(0));
        handles_.free(handle_in(arguments, 1), HandleKind::kMemory);
        return {};
      case RequestCode::kDevAllocData: {
        dl_device(arguments.device(0));
        progress_.set_doing("an allocation");
        const auto bytes = static_cast<std::uint64_t>(arguments.integer(1));
        // Tensor's own alignment is that of the strictest release of TVM.
        arguments.integer_within(2, 0, static_cast<std::int64_t>(kTensorAlignment));
        return OpaqueHandle{allocate(arguments.device(0), bytes)};
      }
      case RequestCode::kDevGetAttr:
        return attribute(arguments);
      case RequestCode::kCopyAmongRemote:
        copy_between(arguments.any_tensor(0), arguments.any_tensor(1));
        return {};
      case RequestCode::kDevStreamSync:
        dl_device(arguments.device(0));
        progress_.set_doing("waiting for a device");
        wait_for(arguments.device(0));
        return {};
      case RequestCode::kDevSetDevice:
      case RequestCode::kDevFreeStream:
      case RequestCode::kDevSetStream:
        dl_device(arguments.device(0));
        return {};
      case RequestCode::kDevCreateStream:
      case RequestCode::kDevGetCurrentStream:
        // Each device has one stream here, which TVM calls null.
        dl_device(arguments.device(0));
        return OpaqueHandle{0};
      default:
        throw Error(ErrorKind::kFormat, "the request code " +
                                            std::to_string(static_cast<int>(code)) +
                                            " is unknown, expected one of TVM 0.8 or later");
    }
  }

  // Clients of TVM up to 0.20 say by a type code what they free.
  std::optional<HandleKind> freed_kind(const Arguments& arguments) const {
    if (encoding_ == Encoding::kTvm021) return std::nullopt;
    switch (const std::int64_t type_code = arguments.integer(1)) {
      case kTypePackedFunctionHandle:
        return HandleKind::kFunction;
      case kTypeModuleHandle:
        return HandleKind::kModule;
      case kTypeObjectHandle:
        return HandleKind::kObject;
      case kTypeNDArrayHandle:
        return HandleKind::kArray;
      default:
        throw Error(ErrorKind::kMismatch, "handles of type code " + std::to_string(type_code) +
                                              " cannot be freed, expected 8, 9, 10 or 13");
    }
  }

  // All values of a request that is nothing but a sequence.
  std::vector<Value> read_sequence(RequestCode code, FrameReader& frame) {
    tell_encoding(code, frame);
    std::vector<Value> values = SequenceReader(frame, handles_, encoding_).rest();
    frame.check_end();
    return values;
  }

  // The first request that shows it tells which encoding the client speaks.
  void tell_encoding(RequestCode code, FrameReader& frame) {
    if (encoding_told_) return;
    std::array<std::int32_t, kTellingWords> words{};
    const std::optional<Encoding> encoding = encoding_of(code, frame.peek(words));
    if (!encoding) return;
    encoding_told_ = true;
    encoding_ = *encoding;
    progress_.set_encoding(encoding_);
  }

  static Handle handle_in(const Arguments& arguments, std::size_t i) {
    if (const auto* handle = std::get_if<OpaqueHandle>(&arguments[i])) return handle->value;
    arguments.fail(i, "a handle");
  }

  static Value attribute(const Arguments& arguments) {
    const Device device = arguments.device(0);
    const auto kind = static_cast<DeviceAttribute>(arguments.integer(1));
    if (is_gpu(device)) return gpu_attribute(device, kind);
    if (kind == DeviceAttribute::kExists && device.type != kDLCPU) return std::int64_t{0};
    return cpu_attribute(kind);
  }

  void check_frame_bytes(std::uint64_t bytes) const {
    if (bytes <= options_.limits.message_bytes) return;
    throw Error(ErrorKind::kMismatch, "a request of " + std::to_string(bytes) +
                                          " bytes is larger than the server's limit of " +
                                          std::to_string(options_.limits.message_bytes));
  }

  void send(const Answer& answer) {
    const std::uint64_t bytes = answer.head.size() + answer.tail.data.size();
    progress_.set_phase(SessionPhase::kAnswering);
    connection_.write({std::as_bytes(std::span(&bytes, 1)), answer.head, answer.tail.data});
  }

  void log(const std::string& message) const {
    if (options_.log) options_.log(message);
  }

  const SessionOptions& options_;
  Connection connection_;
  HandleTable handles_;
  SessionProgress own_progress_;
  SessionProgress& progress_;
  bool initialized_ = false;
  Encoding encoding_ = Encoding::kTvm08;
  bool encoding_told_ = false;
};

}  // namespace

SessionEnd serve_session(int socket, const SessionOptions& options) {
  return Session(socket, options).serve();
}

void SessionProgress::set_doing(std::string_view text) {
  const std::size_t length = std::min(text.size(), doing_.size() - 1);
  std::memcpy(doing_.data(), text.data(), length);
  doing_[length] = '\0';
}

std::string SessionProgress::doing() const {
  return {doing_.data(), ::strnlen(doing_.data(), doing_.size())};
}

}  // namespace run_model::rpc
