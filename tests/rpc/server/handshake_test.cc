#include "rpc/server/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "rpc/server/authentication.h"

namespace run_model::rpc {
namespace {

using ::testing::HasSubstr;
using State = Handshake::State;

ByteVector hello(std::string_view key) {
  ByteVector bytes;
  append_number<std::int32_t>(bytes, kRpcMagic);
  append_key(bytes, key);
  return bytes;
}

// Hands over no more than is wanted each time, as the server does.
ByteVector feed(Handshake& handshake, std::span<const std::byte> bytes) {
  ByteVector answers;
  while (!bytes.empty() && handshake.state() == State::kReading) {
    const std::size_t count = std::min(handshake.wanted(), bytes.size());
    const ByteVector answer = handshake.receive(bytes.first(count));
    answers.insert(answers.end(), answer.begin(), answer.end());
    bytes = bytes.subspan(count);
  }
  return answers;
}

bool is_mismatch(const ByteVector& answer) {
  return answer.size() == 4 && number_at<std::int32_t>(answer) == 0xff273;
}

bool accepts_pynq(const std::string& key) { return key == "pynq"; }

TEST(HandshakeTest, TakesTheKeyAndTheTimeOfTvmsClient) {
  Handshake handshake({}, accepts_pynq);
  EXPECT_TRUE(feed(handshake, hello("client:pynq -timeout=12.5")).empty());
  EXPECT_EQ(handshake.state(), State::kDone);
  EXPECT_EQ(handshake.client().key, "pynq");
  EXPECT_EQ(handshake.client().timeout_seconds, 12.5);
  EXPECT_EQ(handshake.wanted(), 0u);
}

TEST(HandshakeTest, TakesSingleBytes) {
  Handshake handshake({}, accepts_pynq);
  const ByteVector bytes = hello("client:pynq");
  for (const std::byte byte : bytes) {
    ASSERT_EQ(handshake.state(), State::kReading);
    handshake.receive({&byte, 1});
  }
  EXPECT_EQ(handshake.state(), State::kDone);
}

TEST(HandshakeTest, TheWelcomeIsTvms) {
  const ByteVector answer = welcome("server:pynq");
  ASSERT_EQ(answer.size(), 8 + 11u);
  EXPECT_EQ(number_at<std::int32_t>(answer), 0xff271);
  EXPECT_EQ(number_at<std::int32_t>(answer, 4), 11);
}

TEST(HandshakeTest, RefusesOtherKeysAsTvmDoes) {
  for (const char* key : {"client:", "client:zynq", "server:pynq", "pynq", "client:pynq2"}) {
    Handshake handshake({}, accepts_pynq);
    EXPECT_TRUE(is_mismatch(feed(handshake, hello(key)))) << key;
    EXPECT_EQ(handshake.state(), State::kRefused) << key;
  }
  Handshake empty({}, accepts_pynq);
  EXPECT_TRUE(is_mismatch(feed(empty, hello(""))));
}

TEST(HandshakeTest, SaysNothingToOtherProtocols) {
  Handshake handshake({}, accepts_pynq);
  const std::string request = "GET / HTTP/1.1";
  EXPECT_TRUE(feed(handshake, std::as_bytes(std::span(request))).empty());
  EXPECT_EQ(handshake.state(), State::kRefused);
}

TEST(HandshakeTest, RefusesAKeyBeforeItIsSent) {
  for (const std::int32_t length : {-1, 1025, 0x7fffffff}) {
    Handshake handshake({}, accepts_pynq);
    ByteVector bytes;
    append_number<std::int32_t>(bytes, kRpcMagic);
    append_number<std::int32_t>(bytes, length);
    EXPECT_TRUE(is_mismatch(feed(handshake, bytes)));
    EXPECT_THAT(handshake.why_refused(), HasSubstr(std::to_string(length)));
  }
}

TEST(HandshakeTest, KeepsEscapeSequencesOutOfTheLog) {
  Handshake handshake({}, accepts_pynq);
  feed(handshake, hello("client:\x1b[2J"));
  EXPECT_EQ(handshake.why_refused().find('\x1b'), std::string::npos);
}

TEST(ClientKeyTest, SplitsAtWhiteSpace) {
  const auto client = parse_client_key(" client:a:0.5\t-timeout=3 -other=1\n");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->key, "a:0.5");
  EXPECT_EQ(client->timeout_seconds, 3);
}

TEST(ClientKeyTest, IgnoresTimesThatAreNone) {
  for (const char* option : {"-timeout=", "-timeout=x", "-timeout=-1", "-timeout=inf",
                             "-timeout=nan", "-timeout=1s", "-timeout=0", "timeout=5"}) {
    const auto client = parse_client_key(std::string("client:k ") + option);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->timeout_seconds, 0) << option;
  }
}

TEST(ClientKeyTest, RefusesOthers) {
  for (const char* text : {"", " ", "client", "server:k", "k client:k"}) {
    EXPECT_FALSE(parse_client_key(text)) << text;
  }
}

class ChallengeTest : public ::testing::Test {
 protected:
  ByteVector challenge(const Nonce& nonce) {
    ByteVector bytes;
    append_number<std::int32_t>(bytes, kChallengeMagic);
    bytes.insert(bytes.end(), nonce.begin(), nonce.end());
    return feed(handshake_, bytes);
  }
  static Nonce nonce_of(const ByteVector& answer) {
    Nonce nonce;
    std::copy(answer.begin() + 4, answer.end(), nonce.begin());
    return nonce;
  }

  ByteVector key_ = ByteVector(20, std::byte{7});
  Handshake handshake_{key_, accepts_pynq};
  Nonce client_ = random_nonce();
};

TEST_F(ChallengeTest, ServesWhoKnowsTheKeyAndProvesThatItDoesToo) {
  const ByteVector answer = challenge(client_);
  ASSERT_EQ(answer.size(), 4 + 32u);
  EXPECT_EQ(number_at<std::int32_t>(answer), kChallengeMagic);
  const Nonce server = nonce_of(answer);
  EXPECT_NE(server, client_);

  const ByteVector proof = feed(handshake_, client_proof(key_, client_, server));
  ASSERT_EQ(proof.size(), 4 + 32u);
  EXPECT_EQ(nonce_of(proof), server_proof(key_, client_, server));

  feed(handshake_, hello("client:pynq"));
  EXPECT_EQ(handshake_.state(), State::kDone);
}

TEST_F(ChallengeTest, RefusesWhoDoesNotKnowTheKey) {
  const Nonce server = nonce_of(challenge(client_));
  const ByteVector other(20, std::byte{8});
  EXPECT_TRUE(is_mismatch(feed(handshake_, client_proof(other, client_, server))));
  EXPECT_EQ(handshake_.state(), State::kRefused);
}

TEST_F(ChallengeTest, RefusesTheServersOwnProof) {
  const Nonce server = nonce_of(challenge(client_));
  EXPECT_TRUE(is_mismatch(feed(handshake_, server_proof(key_, client_, server))));
}

TEST_F(ChallengeTest, RefusesAProofOfAnotherConnection) {
  Handshake earlier(key_, accepts_pynq);
  ByteVector bytes;
  append_number<std::int32_t>(bytes, kChallengeMagic);
  bytes.insert(bytes.end(), client_.begin(), client_.end());
  const Digest proof = client_proof(key_, client_, nonce_of(feed(earlier, bytes)));
  challenge(client_);
  EXPECT_TRUE(is_mismatch(feed(handshake_, proof)));
}

TEST_F(ChallengeTest, RefusesTvmsClientWithoutItAndSaysWhatToDo) {
  EXPECT_TRUE(is_mismatch(feed(handshake_, hello("client:pynq"))));
  EXPECT_THAT(handshake_.why_refused(), HasSubstr("rpc_auth_proxy"));
}

TEST_F(ChallengeTest, IsNotOfferedWithoutAKey) {
  Handshake open({}, accepts_pynq);
  ByteVector bytes;
  append_number<std::int32_t>(bytes, kChallengeMagic);
  EXPECT_TRUE(is_mismatch(feed(open, bytes)));
}

}  // namespace
}  // namespace run_model::rpc
