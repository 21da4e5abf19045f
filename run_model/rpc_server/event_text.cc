#include "run_model/rpc_server/event_text.h"

#include <array>
#include <ctime>

#include "run_model/shared/json_put.h"

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

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
  put(json, "schema_version", kReportSchema);
  put(json, "time", time_text(time, true));
  put(json, "event", event_name(event.kind));
  put(json, "warning", event.warning);
  put_text_or_null(json, "peer", event.peer);
  if (event.session > 0) {
    put(json, "session", event.session);
  } else {
    put_null(json, "session");
  }
  put(json, "message", event.message);
  return line(json);
}

std::string ready_text(const rpc::HostPort& address, bool behind_proxy) {
  return (behind_proxy ? "behind the proxy " : "listening on ") + rpc::to_text(address) + "\n";
}

std::string ready_json(const rpc::HostPort& address, bool behind_proxy) {
  Json json = Json::object();
  put(json, "schema_version", kReportSchema);
  put(json, "event", behind_proxy ? "behind_proxy" : "listening");
  put(json, "host", address.host);
  put(json, "port", address.port);
  return line(json);
}

}  // namespace run_model
