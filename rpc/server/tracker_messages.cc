#include "rpc/server/tracker_messages.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

namespace run_model::rpc {
namespace {

using Json = nlohmann::json;

// TVM's TrackerCode.
constexpr int kSuccess = 0;
constexpr int kPut = 3;
constexpr int kUpdateInfo = 5;
constexpr int kPendingMatchkeys = 7;

ByteVector message(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  ByteVector bytes;
  append_number<std::int32_t>(bytes, static_cast<std::int32_t>(text.size()));
  append_text(bytes, text);
  return bytes;
}

Json host_json(const Advertised& advertised) {
  return advertised.host.empty() ? Json() : Json(advertised.host);
}

// As TVM's server has it: what a client needs at most to connect.
constexpr std::chrono::seconds kLongestWay{6};

}  // namespace

ByteVector update_info_message(const std::string& key, const Advertised& advertised) {
  Json info = Json::object();
  info["key"] = "server:" + key;
  info["addr"] = Json::array({host_json(advertised), Json(advertised.port)});
  return message(Json::array({Json(kUpdateInfo), info}));
}

ByteVector put_message(const std::string& key, const std::string& matchkey,
                       const Advertised& advertised) {
  return message(
      Json::array({Json(kPut), Json(key), Json::array({Json(advertised.port), Json(matchkey)}),
                   host_json(advertised)}));
}

ByteVector pending_matchkeys_message() { return message(Json::array({Json(kPendingMatchkeys)})); }

bool is_success(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  return value.is_number_integer() && value == kSuccess;
}

std::optional<std::vector<std::string>> read_matchkeys(const std::string& json) {
  const Json value = Json::parse(json, nullptr, false);
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> keys;
  for (const Json& item : value) {
    if (!item.is_string()) return std::nullopt;
    keys.push_back(item.get<std::string>());
  }
  return keys;
}

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
