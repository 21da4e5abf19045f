// The challenge that a client must answer before the handshake where the server has an auth key.
//
// The client's side is scripts/rpc_auth_proxy, which TVM's own client connects through. Numbers are
// little-endian, K is the key, "|" puts bytes behind one another:
//   client  i32 0xaf271, 32 bytes Nc
//   server  i32 0xaf271, 32 bytes Ns
//   client  32 bytes HMAC-SHA256(K, "run_model rpc client" | Nc | Ns)
//   server  i32 0xaf271, 32 bytes HMAC-SHA256(K, "run_model rpc server" | Nc | Ns)
//           or i32 0xff273 (TVM's "no such key") and the end of the connection
// Nc and Ns are random and used once. Both sides prove that they know K; the client does first, so
// that a stranger gets nothing out of the server that K could be guessed from. The different texts
// keep one side's proof from being taken for the other's. TVM's handshake follows on the same
// connection.
//
// This says who has connected and no more: what follows is neither encrypted nor protected against
// somebody who can change packets on their way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace run_model::rpc {

// HMAC-SHA256 (RFC 2104, FIPS 198-1).
using Digest = std::array<std::byte, 32>;

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Takes the same time wherever the two differ. False for different lengths.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

inline constexpr std::int32_t kChallengeMagic = 0xaf271;

using Nonce = std::array<std::byte, 32>;

Nonce random_nonce();

Digest client_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server);
Digest server_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server);

// Reads the file of --auth-key-file: its bytes without white space (of ASCII) at their end. Throws
// Error(kFile) for a file that cannot be read or that others than its owner, and this process's
// user by an access control list, can read or write, Error(kFormat) for fewer than 16 bytes or more
// than 4096.
std::vector<std::byte> read_auth_key(const std::filesystem::path& path);

}  // namespace run_model::rpc
