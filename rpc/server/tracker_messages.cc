#include "rpc/server/tracker_messages.h"

#include <nlohmann/json.hpp>

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

}  // namespace run_model::rpc
