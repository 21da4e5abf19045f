#include "rpc/server/handshake.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kNumber = sizeof(std::int32_t);

constexpr std::string_view kClientPrefix = "client:";
constexpr std::string_view kTimeout = "-timeout=";
// As Python's str.split() takes it, of ASCII.
constexpr std::string_view kSpace = " \t\n\r\v\f";

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

void append_key(ByteVector& bytes, std::string_view key) {
  append_number<std::int32_t>(bytes, static_cast<std::int32_t>(key.size()));
  append_text(bytes, key);
}

ByteVector welcome(const std::string& server_key) {
  ByteVector answer;
  append_number<std::int32_t>(answer, kRpcMagic);
  append_key(answer, server_key);
  return answer;
}

Handshake::Handshake(std::span<const std::byte> auth_key,
                     std::function<bool(const std::string&)> accept_key)
    : auth_key_(auth_key), accept_key_(std::move(accept_key)) {}

ByteVector Handshake::receive(std::span<const std::byte> bytes) {
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  ByteVector answer;
  while (state_ == State::kReading && received_.size() >= wanted_) {
    const ByteVector more = step();
    answer.insert(answer.end(), more.begin(), more.end());
  }
  return answer;
}

ByteVector Handshake::step() {
  switch (step_) {
    case Step::kMagic:
    case Step::kMagicAfterProof:
      return magic(number_at<std::int32_t>(received_));
    case Step::kClientNonce:
      return challenge();
    case Step::kClientProof:
      return check_proof();
    case Step::kKeyLength:
      return key_length(number_at<std::int32_t>(received_));
    case Step::kKey:
      return key();
  }
  return {};
}

ByteVector Handshake::magic(std::int32_t value) {
  const bool proof_needed = !auth_key_.empty() && step_ == Step::kMagic;
  if (proof_needed && value == kChallengeMagic) {
    go_on(Step::kClientNonce, Nonce().size());
    return {};
  }
  if (proof_needed && value == kRpcMagic) {
    return refuse("came without answering the challenge; TVM's clients connect through "
                  "scripts/rpc_auth_proxy",
                  true);
  }
  if (value == kChallengeMagic) {
    return refuse("wants to be challenged, but this server has no --auth-key-file", true);
  }
  if (value != kRpcMagic) return refuse("does not speak TVM's RPC protocol", false);
  go_on(Step::kKeyLength, kNumber);
  return {};
}

ByteVector Handshake::challenge() {
  std::copy(received_.begin(), received_.end(), client_nonce_.begin());
  server_nonce_ = random_nonce();
  ByteVector answer;
  append_number<std::int32_t>(answer, kChallengeMagic);
  answer.insert(answer.end(), server_nonce_.begin(), server_nonce_.end());
  go_on(Step::kClientProof, Digest().size());
  return answer;
}

ByteVector Handshake::check_proof() {
  const Digest expected = client_proof(auth_key_, client_nonce_, server_nonce_);
  if (!equal_in_constant_time(received_, expected)) {
    return refuse("does not know the key of --auth-key-file", true);
  }
  const Digest proof = server_proof(auth_key_, client_nonce_, server_nonce_);
  ByteVector answer;
  append_number<std::int32_t>(answer, kChallengeMagic);
  answer.insert(answer.end(), proof.begin(), proof.end());
  go_on(Step::kMagicAfterProof, kNumber);
  return answer;
}

ByteVector Handshake::key_length(std::int32_t length) {
  if (length < 0 || length > kMostKeyBytes) {
    return refuse("sends a key of " + std::to_string(length) + " bytes, expected at most " +
                      std::to_string(kMostKeyBytes),
                  true);
  }
  go_on(Step::kKey, static_cast<std::size_t>(length));
  return {};
}

ByteVector Handshake::key() {
  const std::string_view text = as_text(received_);
  const std::optional<ClientKey> client = parse_client_key(text);
  if (!client) return refuse("says " + in_quotes(text) + ", which is no client's key", true);
  if (!accept_key_(client->key)) {
    return refuse("looks for the key " + in_quotes(client->key) + ", which is not served here",
                  true);
  }
  client_ = *client;
  state_ = State::kDone;
  wanted_ = 0;
  received_.clear();
  return {};
}

void Handshake::go_on(Step step, std::size_t wanted) {
  step_ = step;
  wanted_ = wanted;
  received_.clear();
}

ByteVector Handshake::refuse(std::string why, bool say_mismatch) {
  state_ = State::kRefused;
  wanted_ = 0;
  received_.clear();
  why_refused_ = std::move(why);
  ByteVector answer;
  if (say_mismatch) append_number<std::int32_t>(answer, kRpcMismatch);
  return answer;
}

std::optional<ClientKey> parse_client_key(std::string_view text) {
  const std::string_view name = next_word(text);
  if (!name.starts_with(kClientPrefix)) return std::nullopt;
  ClientKey result{std::string(name.substr(kClientPrefix.size())), 0};
  while (true) {
    const std::string_view option = next_word(text);
    if (option.empty()) return result;
    if (!option.starts_with(kTimeout)) continue;
    const double seconds = whole_number<double>(option.substr(kTimeout.size())).value_or(0);
    if (std::isfinite(seconds) && seconds > 0) result.timeout_seconds = seconds;
  }
}

}  // namespace run_model::rpc
