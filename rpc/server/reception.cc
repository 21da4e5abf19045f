#include "rpc/server/reception.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

constexpr std::chrono::seconds kHandshakeTime{10};
// A client more lets the one go that has been at its handshake for longest.
constexpr std::size_t kMostClients = 64;
// For a refused client to read why.
constexpr std::chrono::seconds kRefusalTime{2};
constexpr std::size_t kMostRefused = 32;
// Strangers that try again and again fill no disk.
constexpr std::chrono::minutes kRefusalPeriod{1};
constexpr int kMostRefusalsLogged = 50;  // in that time
// When the system gives no descriptor for another connection.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

Reception::Reception(Listener& listener, SessionTable& sessions, const ServerOptions& options,
                     std::function<bool(const std::string&)> accept_key, EventLog log)
    : listener_(listener),
      sessions_(sessions),
      options_(options),
      accept_key_(std::move(accept_key)),
      log_(std::move(log)) {}

int Reception::waiting() const {
  return static_cast<int>(std::count_if(clients_.begin(), clients_.end(), [](const auto& client) {
    return !client->gone && client->handshake.state() == Handshake::State::kDone;
  }));
}

void Reception::prepare(PollSet& polls) const {
  if (has_room()) {
    if (accept_again_ > Clock::now()) {
      polls.wake_at(accept_again_);
    } else {
      polls.watch(listener_.fd(), POLLIN);
    }
  }
  for (const auto& client : clients_) {
    const bool reading = client->handshake.state() == Handshake::State::kReading;
    polls.watch(client->socket.get(), reading ? POLLIN : POLLRDHUP);
    if (reading) polls.wake_at(client->deadline);
  }
  for (const auto& refused : refused_) refused->prepare(polls);
}

void Reception::step(TimePoint now) {
  accept(now);
  for (const auto& client : clients_) advance(*client, now);
  std::erase_if(clients_, [](const auto& client) { return client->gone; });
  for (const auto& refused : refused_) refused->step(now);
  std::erase_if(refused_, [](const auto& refused) { return refused->is_over(); });
}

void Reception::accept(TimePoint now) {
  while (has_room() && now >= accept_again_) {
    std::string peer;
    OwnedFd socket = listener_.accept(peer);
    if (!socket) {
      // Not of a connection that was given up again while it waited.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ECONNABORTED && errno != EINTR) {
        accept_again_ = now + kAcceptPause;
      }
      return;
    }
    if (clients_.size() >= kMostClients) {
      const auto oldest = std::find_if(clients_.begin(), clients_.end(), [](const auto& client) {
        return client->handshake.state() == Handshake::State::kReading;
      });
      if (oldest == clients_.end()) return;
      drop(**oldest, "made room for others, since its handshake took long");
      clients_.erase(oldest);
    }
    set_client_options(socket.get());
    clients_.push_back(
        std::make_unique<Client>(Client{std::move(socket), std::move(peer), now + kHandshakeTime,
                                        Handshake(options_.auth_key, accept_key_), false}));
    advance(*clients_.back(), now);
    std::erase_if(clients_, [](const auto& client) { return client->gone; });
  }
}

void Reception::advance(Client& client, TimePoint now) {
  if (client.gone) return;
  if (client.handshake.state() == Handshake::State::kReading) receive(client);
  if (client.gone) return;
  switch (client.handshake.state()) {
    case Handshake::State::kReading:
      if (now >= client.deadline) drop(client, "did not finish its handshake in time");
      break;
    case Handshake::State::kRefused:
      refuse(client, now);
      break;
    case Handshake::State::kDone:
      if (peer_is_gone(client.socket.get())) {
        drop(client, "went away while it waited for its turn");
      } else if (sessions_.free_slots() > 0) {
        start(client, now);
      }
      break;
  }
}

void Reception::receive(Client& client) {
  std::array<std::byte, kMostKeyBytes> buffer;
  while (client.handshake.state() == Handshake::State::kReading) {
    const std::size_t wanted = std::min(client.handshake.wanted(), buffer.size());
    const long got = receive_now(client.socket.get(), buffer.data(), wanted);
    if (got == 0) return;
    if (got < 0) {
      drop(client, "went away during its handshake");
      return;
    }
    acknowledge_at_once(client.socket.get());
    const ByteVector answer =
        client.handshake.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
    // Few bytes on a new connection: either they fit or the client does not read.
    if (!answer.empty() && send_now(client.socket.get(), answer.data(), answer.size()) !=
                               static_cast<long>(answer.size())) {
      drop(client, "does not read its answers");
      return;
    }
  }
}

void Reception::drop(Client& client, const std::string& why) {
  client.gone = true;
  const TimePoint now = Clock::now();
  if (now - refusals_since_ > kRefusalPeriod) {
    refusals_since_ = now;
    refusals_ = 0;
  }
  if (++refusals_ > kMostRefusalsLogged) return;
  log_({ServerEvent::Kind::kRefused, true, client.peer, 0, why});
  if (refusals_ < kMostRefusalsLogged) return;
  log_({ServerEvent::Kind::kRefused, true, "", 0,
        "refused many clients; more in the same minute are not logged"});
}

void Reception::refuse(Client& client, TimePoint now) {
  drop(client, client.handshake.why_refused());
  if (refused_.size() >= kMostRefused) refused_.erase(refused_.begin());
  refused_.push_back(std::make_unique<Farewell>(std::move(client.socket), "", now + kRefusalTime));
}

void Reception::start(Client& client, TimePoint now) {
  const ByteVector answer = welcome("server:" + options_.key);
  if (send_now(client.socket.get(), answer.data(), answer.size()) !=
      static_cast<long>(answer.size())) {
    drop(client, "does not read its answers");
    return;
  }
  client.gone = true;
  sessions_.start(std::move(client.socket), client.peer, client.handshake.client(), now);
}

}  // namespace run_model::rpc
