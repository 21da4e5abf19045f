#include "rpc/server/reception.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

constexpr std::chrono::seconds kHandshakeTime{10};
// Clients at their handshake, in all and from one address: one more lets another go.
constexpr std::size_t kMostHandshakes = 64;
constexpr std::size_t kMostOfAnAddress = 48;
// Clients that wait for a session; the system keeps some more.
constexpr int kMostWaiting = 64;
// Connections taken at a time, so that sessions, the tracker and signals get their turn however
// many strangers come.
constexpr int kMostAccepts = 16;
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
  // Who waits has the first turn.
  for (const auto& client : clients_) advance(*client, now);
  std::erase_if(clients_, [](const auto& client) { return client->gone; });
  accept(now);
  for (const auto& refused : refused_) refused->step(now);
  std::erase_if(refused_, [](const auto& refused) { return refused->is_over(); });
}

bool Reception::has_room() const { return waiting() < kMostWaiting; }

void Reception::accept(TimePoint now) {
  for (int i = 0; i < kMostAccepts && has_room() && now >= accept_again_; ++i) {
    std::string peer;
    OwnedFd socket = listener_.accept(peer);
    if (!socket) {
      // Not of a connection that was given up again while it waited.
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ECONNABORTED && errno != EINTR) {
        accept_again_ = now + kAcceptPause;
      }
      return;
    }
    std::string host = peer.substr(0, peer.rfind(':'));
    make_room(host);
    set_client_options(socket.get());
    clients_.push_back(std::make_unique<Client>(
        Client{std::move(socket), std::move(peer), std::move(host), now + kHandshakeTime,
               Handshake(options_.auth_key, accept_key_), false}));
    advance(*clients_.back(), now);
    std::erase_if(clients_, [](const auto& client) { return client->gone; });
  }
}

// Lets one go where there are too many: of the address with the most, who has said nothing yet
// before who has, and of these who came first.
void Reception::make_room(const std::string& host) {
  std::map<std::string_view, std::size_t> counts;
  std::size_t handshakes = 0;
  for (const auto& client : clients_) {
    if (client->handshake.state() != Handshake::State::kReading) continue;
    ++counts[client->host];
    ++handshakes;
  }
  const auto own = counts.find(host);
  const auto busiest =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string_view crowded;
  if (own != counts.end() && own->second >= kMostOfAnAddress) {
    crowded = host;
  } else if (handshakes >= kMostHandshakes) {
    crowded = busiest->first;
  } else {
    return;
  }
  auto chosen = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    const Handshake& handshake = (*client)->handshake;
    if (handshake.state() != Handshake::State::kReading || (*client)->host != crowded) continue;
    if (chosen == clients_.end() || (!handshake.has_begun() && (*chosen)->handshake.has_begun())) {
      chosen = client;
    }
  }
  drop(**chosen, "made room for others, since its handshake took long");
  clients_.erase(chosen);
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
  refused_.push_back(
      std::make_unique<Farewell>(std::move(client.socket), ByteVector(), now + kRefusalTime));
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
