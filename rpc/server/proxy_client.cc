#include "rpc/server/proxy_client.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "rpc/server/handshake.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kNumberBytes = sizeof(std::int32_t);
// After a session, and when no client has come for as long as the proxy waits for one.
constexpr std::chrono::milliseconds kShortPause{100};

}  // namespace

ProxyClient::ProxyClient(HostPort proxy, std::string key, SessionTable& sessions, EventLog log)
    : connection_(std::move(proxy)),
      key_(std::move(key)),
      sessions_(sessions),
      log_(std::move(log)) {}

void ProxyClient::prepare(PollSet& polls) const {
  if (sessions_.free_slots() <= 0) return;
  connection_.prepare(polls);
  if (connection_.socket() >= 0) polls.watch(connection_.socket(), POLLIN);
}

void ProxyClient::step(TimePoint now) {
  if (sessions_.free_slots() <= 0) return;
  if (connection_.step(now)) begin();
  if (connection_.socket() >= 0) {
    receive(now);
  } else if (!told_ && !connection_.why_not().empty()) {
    lose(now, connection_.why_not());
  }
}

void ProxyClient::begin() {
  ByteVector hello;
  append_number<std::int32_t>(hello, kRpcMagic);
  append_key(hello, "server:" + key_);
  // A new connection takes so few bytes; where it does not, its end shows in receive().
  static_cast<void>(send_now(connection_.socket(), hello.data(), hello.size()));
  received_.clear();
  wanted_ = kNumberBytes;
  if (!waiting_told_ || told_) log(false, "waiting for clients behind the proxy as " + key_);
  waiting_told_ = true;
  told_ = false;
}

void ProxyClient::lose(TimePoint now, const std::string& why) {
  if (connection_.socket() >= 0) connection_.fail(now, why);
  if (told_) return;
  told_ = true;
  log(true, "the proxy cannot be used (" + why + "); trying again until it can");
}

void ProxyClient::receive(TimePoint now) {
  std::array<std::byte, kMostKeyBytes> buffer;
  while (connection_.socket() >= 0) {
    const long got = receive_now(connection_.socket(), buffer.data(),
                                 std::min(wanted_ - received_.size(), buffer.size()));
    if (got == 0) return;
    if (got < 0) {
      lose(now, "it has closed the connection");
      return;
    }
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + got);
    if (received_.size() == wanted_) handle(now);
  }
}

void ProxyClient::handle(TimePoint now) {
  if (wanted_ == kNumberBytes) {
    switch (number_at<std::int32_t>(received_)) {
      case kRpcMagic:
        wanted_ = 2 * kNumberBytes;
        return;
      case kRpcMismatch:  // no client has come
        connection_.take(now, kShortPause);
        return;
      case kRpcDuplicate:
        lose(now, "another server waits there with the same key");
        return;
      default:
        lose(now, "what answers there is no proxy");
        return;
    }
  }
  if (wanted_ == 2 * kNumberBytes) {
    const auto length = number_at<std::int32_t>(received_, kNumberBytes);
    if (length <= 0 || length > kMostKeyBytes) {
      lose(now, "it sends a key of " + std::to_string(length) + " bytes");
      return;
    }
    wanted_ += static_cast<std::size_t>(length);
    return;
  }
  const std::optional<ClientKey> client =
      parse_client_key(as_text(received_).substr(2 * kNumberBytes));
  if (!client) {
    lose(now, "it sends a client without a key");
    return;
  }
  connection_.succeed();
  sessions_.start(connection_.take(now, kShortPause), to_text(connection_.address()), *client, now);
}

void ProxyClient::log(bool warning, std::string message) const {
  log_({ServerEvent::Kind::kProxy, warning, to_text(connection_.address()), 0, std::move(message)});
}

}  // namespace run_model::rpc
