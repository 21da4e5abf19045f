// The server's side of the handshake, without the socket: bytes come in, answers go out.
//
// As TVM's clients speak it (python/tvm/rpc/base.py and server.py,
// src/runtime/rpc/rpc_socket_impl.cc, v0.18.0), numbers little-endian:
//   client  i32 0xff271, i32 length, "client:KEY" and options (ClientKey)
//   server  i32 0xff271, i32 length, "server:KEY"; or i32 0xff273: no such key here
// Where the server has an auth key, the challenge comes before (authentication.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rpc/server/authentication.h"
#include "rpc/server/wire.h"

namespace run_model::rpc {

inline constexpr std::int32_t kRpcMagic = 0xff271;
inline constexpr std::int32_t kRpcDuplicate = kRpcMagic + 1;
inline constexpr std::int32_t kRpcMismatch = kRpcMagic + 2;

// Far beyond any key; what a stranger can make the server remember.
inline constexpr std::int32_t kMostKeyBytes = 1024;

// What a client says of itself: "client:KEY -timeout=12.5", the key that it looks for, and options
// after white space.
struct ClientKey {
  std::string key;
  double timeout_seconds = 0;  // 0: none
};

// None for what is not a client's. Options of other names, and values that are no time, are ignored
// as TVM's server ignores them.
std::optional<ClientKey> parse_client_key(std::string_view text);

// i32 length and the text, as both sides send their keys.
void append_key(ByteVector& bytes, std::string_view key);

class Handshake {
 public:
  enum class State {
    kReading,
    kDone,     // client() has a key that was accepted; the caller sends the welcome
    kRefused,  // why_refused() says why; the answer to send is the last
  };

  // `auth_key` (empty: no challenge) outlives this. `accept_key` is asked once.
  Handshake(std::span<const std::byte> auth_key,
            std::function<bool(const std::string&)> accept_key);

  State state() const { return state_; }

  // Whether the client has said what no other program would.
  bool has_begun() const { return step_ != Step::kMagic; }

  // How many bytes to receive before anything can be said about them. Reading no more than these
  // leaves what follows the handshake to the session.
  std::size_t wanted() const { return wanted_ - received_.size(); }

  // At most wanted() bytes. Returns what to send, often nothing.
  ByteVector receive(std::span<const std::byte> bytes);

  const ClientKey& client() const { return client_; }
  const std::string& why_refused() const { return why_refused_; }

 private:
  enum class Step { kMagic, kClientNonce, kClientProof, kMagicAfterProof, kKeyLength, kKey };

  ByteVector step();
  ByteVector magic(std::int32_t value);
  ByteVector challenge();
  ByteVector check_proof();
  ByteVector key_length(std::int32_t length);
  ByteVector key();
  void go_on(Step step, std::size_t wanted);
  ByteVector refuse(std::string why, bool say_mismatch);

  std::span<const std::byte> auth_key_;
  std::function<bool(const std::string&)> accept_key_;
  State state_ = State::kReading;
  Step step_ = Step::kMagic;
  std::size_t wanted_ = sizeof(std::int32_t);
  ByteVector received_;
  Nonce client_nonce_{};
  Nonce server_nonce_{};
  ClientKey client_;
  std::string why_refused_;
};

// The answer to a client whose key was accepted.
ByteVector welcome(const std::string& server_key);

}  // namespace run_model::rpc
