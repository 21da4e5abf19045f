#include "run_model/rpc_server/event_text.h"

#include <array>
#include <ctime>

#include "run_model/shared/json.h"

namespace run_model {
namespace {

const char* event_name(rpc::ServerEvent::Kind kind) {
  using Kind = rpc::ServerEvent::Kind;
  switch (kind) {
    case Kind::kListening:
      return "listening";
    case Kind::kConnected:
      return "connected";
    case Kind::kRefused:
      return "refused";
    case Kind::kSessionLog:
      return "session_log";
    case Kind::kSessionEnded:
      return "session_ended";
    case Kind::kSessionKilled:
      return "session_killed";
    case Kind::kTracker:
      return "tracker";
    case Kind::kProxy:
      return "proxy";
    case Kind::kStopped:
      return "stopped";
    case Kind::kFailed:
      return "failed";
  }
  return "";
}

std::string time_text(std::int64_t time, bool universal) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  universal ? ::gmtime_r(&seconds, &parts) : ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), universal ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S",
                &parts);
  return text.data();
}

std::string line(const Json& json) { return json.compact() + "\n"; }

}  // namespace

std::string event_text(const rpc::ServerEvent& event, std::int64_t time) {
  std::string text = time_text(time, false);
  if (event.warning) text += " WARNING";
  if (event.session > 0) text += " session " + std::to_string(event.session);
  if (!event.peer.empty()) text += " " + event.peer;
  if (event.session > 0 || !event.peer.empty()) text += ":";
  return text + " " + event.message + "\n";
}

std::string event_json(const rpc::ServerEvent& event, std::int64_t time) {
  Json json = Json::object();
  json.put("schema_version", kReportSchema);
  json.put("time", time_text(time, true));
  json.put("event", event_name(event.kind));
  json.put("warning", event.warning);
  json.put("peer", text_or_null(event.peer));
  if (event.session > 0) {
    json.put("session", event.session);
  } else {
    json.put("session", Json());
  }
  json.put("message", event.message);
  return line(json);
}

std::string ready_text(const rpc::HostPort& address, bool behind_proxy) {
  return (behind_proxy ? "behind the proxy " : "listening on ") + rpc::to_text(address) + "\n";
}

std::string ready_json(const rpc::HostPort& address, bool behind_proxy) {
  Json json = Json::object();
  json.put("schema_version", kReportSchema);
  json.put("event", behind_proxy ? "behind_proxy" : "listening");
  json.put("host", address.host);
  json.put("port", address.port);
  return line(json);
}

}  // namespace run_model
