// A client of a session, as far as tests need one: it builds frames and reads answers byte by byte.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <run_model/packed_function.h>
#include <run_model/rpc/session.h>
#include "rpc/encoding.h"
#include "rpc/protocol.h"

namespace run_model::rpc {

// Bytes put together in the order of a frame.
class FrameBuilder {
 public:
  explicit FrameBuilder(RequestCode code) { number(static_cast<std::int32_t>(code)); }

  template <typename T>
  FrameBuilder& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  FrameBuilder& text(std::string_view text) {
    number(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  FrameBuilder& codes(std::initializer_list<std::int32_t> codes) {
    number(static_cast<std::int32_t>(codes.size()));
    for (const std::int32_t code : codes) number(code);
    return *this;
  }
  // The type of the next value, as TVM 0.21 and later write it; the sequence begins with its count.
  FrameBuilder& count(std::int32_t values) { return number(values); }
  FrameBuilder& type(WireType type) { return number(type_code(Encoding::kTvm021, type)); }
  FrameBuilder& device(std::int32_t type = kDLCPU) { return number(type).number(std::int32_t{0}); }
  FrameBuilder& tensor(std::uint64_t memory, std::initializer_list<std::int64_t> shape,
                       DLDataType dtype, std::uint64_t byte_offset = 0,
                       std::int32_t device_type = kDLCPU) {
    number(memory).device(device_type).number(static_cast<std::int32_t>(shape.size()));
    number(dtype.code).number(dtype.bits).number(dtype.lanes);
    for (const std::int64_t dimension : shape) number(dimension);
    return number(byte_offset);
  }
  FrameBuilder& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }

  // With the length in front.
  std::string frame() const {
    const std::uint64_t length = bytes_.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + bytes_;
  }

 private:
  std::string bytes_;
};

// What an answer consists of, read from its start.
class AnswerParts {
 public:
  explicit AnswerParts(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  T number() {
    T value;
    if (bytes_.size() < sizeof(value)) throw std::out_of_range("the answer is too short");
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.erase(0, sizeof(value));
    return value;
  }
  std::string text() {
    const auto length = static_cast<std::size_t>(number<std::uint64_t>());
    std::string text = bytes_.substr(0, length);
    bytes_.erase(0, length);
    return text;
  }
  RequestCode code() { return static_cast<RequestCode>(number<std::int32_t>()); }
  std::vector<std::int32_t> codes() {
    std::vector<std::int32_t> codes(static_cast<std::size_t>(number<std::int32_t>()));
    for (std::int32_t& code : codes) code = number<std::int32_t>();
    return codes;
  }
  // The only value of a system request's answer.
  std::uint64_t handle() {
    if (code() != RequestCode::kReturn || codes() != std::vector<std::int32_t>{kTypeOpaqueHandle}) {
      throw std::runtime_error("the answer is no handle");
    }
    return number<std::uint64_t>();
  }
  // The text of an exception; empty where the answer is none.
  std::string exception() {
    if (code() != RequestCode::kException) return {};
    codes();
    return text();
  }
  const std::string& rest() const { return bytes_; }

 private:
  std::string bytes_;
};

// A session on the other end of a socket pair, in a thread of its own.
class SessionThread {
 public:
  explicit SessionThread(const Registry& functions, SessionLimits limits = {}) {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_) != 0)
      throw std::runtime_error("no socket pair");
    limits.spin_microseconds = 0;
    options_.limits = limits;
    options_.functions = &functions;
    options_.progress = &progress_;
    thread_ = std::thread([this] {
      end_ = serve_session(sockets_[1], options_);
      ::shutdown(sockets_[1], SHUT_RDWR);
    });
  }
  ~SessionThread() {
    finish();
    ::close(sockets_[0]);
    ::close(sockets_[1]);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(sockets_[0], bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  // The next answer; throws when the session closes instead.
  AnswerParts receive() {
    const std::string length = read(sizeof(std::uint64_t));
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, length.data(), sizeof(bytes));
    return AnswerParts(read(static_cast<std::size_t>(bytes)));
  }
  AnswerParts ask(const FrameBuilder& frame) {
    send(frame.frame());
    return receive();
  }
  // What every client says first.
  void initialize() {
    if (ask(FrameBuilder(RequestCode::kInitServer).text(kProtocolVersion).codes({})).code() !=
        RequestCode::kReturn) {
      throw std::runtime_error("the session refused to start");
    }
  }
  std::uint64_t function(std::string_view name) {
    return ask(FrameBuilder(RequestCode::kGetGlobalFunc).codes({kTypeString}).text(name)).handle();
  }
  std::uint64_t allocate(std::uint64_t bytes) {
    return ask(FrameBuilder(RequestCode::kDevAllocData)
                   .codes({kTypeDevice, kTypeInt, kTypeInt, kTypeDataType})
                   .device()
                   .number(bytes)
                   .number(std::uint64_t{64})
                   .number(std::uint8_t{kDLFloat})
                   .number(std::uint8_t{32})
                   .number(std::uint16_t{1})
                   .number(std::int32_t{0}))
        .handle();
  }

  // Closes this end and waits for the session.
  SessionEnd finish() {
    if (thread_.joinable()) {
      ::shutdown(sockets_[0], SHUT_RDWR);
      thread_.join();
    }
    return end_;
  }
  // Only this end's sending: the session still answers.
  void stop_sending() { ::shutdown(sockets_[0], SHUT_WR); }

  const SessionProgress& progress() const { return progress_; }

 private:
  std::string read(std::size_t bytes) {
    std::string text(bytes, '\0');
    if (bytes > 0 &&
        ::recv(sockets_[0], text.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) {
      throw std::runtime_error("the session closed");
    }
    return text;
  }

  int sockets_[2]{};
  SessionOptions options_;
  SessionProgress progress_;
  SessionEnd end_ = SessionEnd::kBroken;
  std::thread thread_;
};

}  // namespace run_model::rpc
