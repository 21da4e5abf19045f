#include "rpc/server/sessions/farewell.h"

#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "rpc/packed_sequence.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;
// At a time, so that the others get their turn.
constexpr int kPiecesAtATime = 16;

}  // namespace

Farewell::Farewell(OwnedFd socket, ByteVector frame, TimePoint deadline)
    : socket_(std::move(socket)), frame_(std::move(frame)), deadline_(deadline) {
  send_rest();
}

void Farewell::prepare(PollSet& polls) const {
  if (!socket_) return;
  polls.watch(socket_.get(), static_cast<short>(sent_ < frame_.size() ? POLLIN | POLLOUT : POLLIN));
  polls.wake_at(deadline_);
}

void Farewell::step(TimePoint now) {
  if (socket_ && sent_ < frame_.size()) send_rest();
  if (socket_) drain();
  if (now >= deadline_) socket_.reset();
}

void Farewell::send_rest() {
  const long taken = send_now(socket_.get(), frame_.data() + sent_, frame_.size() - sent_);
  if (taken < 0) {
    socket_.reset();
    return;
  }
  sent_ += static_cast<std::size_t>(taken);
  if (sent_ == frame_.size()) ::shutdown(socket_.get(), SHUT_WR);
}

void Farewell::drain() {
  std::array<std::byte, 65536> buffer;
  for (int piece = 0; piece < kPiecesAtATime; ++piece) {
    const long got = receive_now(socket_.get(), buffer.data(), buffer.size());
    if (got == 0) return;
    drained_ += got > 0 ? static_cast<std::uint64_t>(got) : 0;
    if (got < 0 || drained_ > kMostBytes) {
      socket_.reset();
      return;
    }
  }
}

ByteVector exception_frame(std::string_view text, Encoding encoding) {
  if (text.empty()) return {};
  const Answer answer = exception_answer(std::string(text), encoding);
  ByteVector frame;
  append_number<std::uint64_t>(frame, answer.head.size());
  frame.insert(frame.end(), answer.head.begin(), answer.head.end());
  return frame;
}

}  // namespace run_model::rpc
