#include "rpc/server/matchkeys.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>

namespace run_model::rpc {
namespace {

// As TVM's server has it: what a client needs at most to connect.
constexpr std::chrono::seconds kLongestWay{6};

}  // namespace

std::string Matchkeys::add() {
  std::random_device device;
  const auto number = static_cast<unsigned long long>(device()) << 32 | device();
  char digits[32];
  std::snprintf(digits, sizeof(digits), ":0.%020llu", number);
  std::string key = key_ + digits;
  given_away_.emplace(key, TimePoint::max());
  return key;
}

bool Matchkeys::take(const std::string& key) { return given_away_.erase(key) > 0; }

std::vector<std::string> Matchkeys::update(const std::vector<std::string>& pending, TimePoint now) {
  std::vector<std::string> unused;
  for (auto& [key, since] : given_away_) {
    if (std::find(pending.begin(), pending.end(), key) != pending.end()) {
      since = TimePoint::max();
    } else if (since == TimePoint::max()) {
      since = now;
    } else if (now - since > kLongestWay) {
      unused.push_back(key);
    }
  }
  for (const std::string& key : unused) given_away_.erase(key);
  return unused;
}

}  // namespace run_model::rpc
