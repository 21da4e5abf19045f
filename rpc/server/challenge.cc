#include "rpc/server/challenge.h"

#include <cstring>
#include <random>
#include <string_view>

#include "rpc/server/wire.h"

namespace run_model::rpc {
namespace {

Digest proof(std::span<const std::byte> key, std::string_view role, const Nonce& client,
             const Nonce& server) {
  ByteVector message;
  append_text(message, role);
  message.insert(message.end(), client.begin(), client.end());
  message.insert(message.end(), server.begin(), server.end());
  return hmac_sha256(key, message);
}

}  // namespace

Nonce random_nonce() {
  std::random_device device;
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); i += sizeof(std::uint32_t)) {
    const std::uint32_t word = device();
    std::memcpy(nonce.data() + i, &word, sizeof(word));
  }
  return nonce;
}

Digest client_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server) {
  return proof(key, "run_model rpc client", client, server);
}

Digest server_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server) {
  return proof(key, "run_model rpc server", client, server);
}

}  // namespace run_model::rpc
