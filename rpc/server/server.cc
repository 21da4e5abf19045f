#include <run_model/rpc/server.h>

#include <stdlib.h>
#include <string.h>

#include <optional>
#include <string>
#include <utility>

#include <run_model/rpc/function.h>
#include "rpc/functions/builtin.h"
#include "rpc/server/proxy_client.h"
#include "rpc/server/reception.h"
#include "rpc/server/sessions/session_table.h"
#include "rpc/server/sockets.h"
#include "rpc/server/tracker_client.h"
#include "rpc/session_folder.h"

namespace run_model::rpc {
namespace {

// What a session's process does: serves the client with the built-in functions and those that
// `add_functions` (if set) adds.
SessionBody make_session_body(const ServerOptions& options,
                              std::function<void(Registry&)> add_functions) {
  return [limits = options.limits, file_bytes = options.file_bytes, threads = options.threads,
          add_functions = std::move(add_functions)](const SessionStart& start) {
    // Read when the pool of threads is made, with the first parallel loop.
    if (threads > 0) ::setenv("TVM_NUM_THREADS", std::to_string(threads).c_str(), 1);
    SessionFolder folder(start.folder, file_bytes);
    Registry registry;
    add_builtin_functions(registry, folder);
    if (add_functions) add_functions(registry);
    SessionOptions session;
    session.limits = limits;
    session.functions = &registry;
    session.progress = start.progress;
    session.log = start.log;
    return serve_session(start.socket, session);
  };
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, EventLog log, SessionBody body)
      : options_((check_options(options), std::move(options))),
        log_(std::move(log)),
        sessions_(options_, without_key(std::move(body)), log_) {
    if (options_.proxy) {
      proxy_.emplace(*options_.proxy, options_.key, sessions_, log_);
      return;
    }
    listener_.emplace(options_.host, options_.port, options_.port_end);
    if (options_.tracker) {
      const HostPort advertised = options_.advertise.value_or(HostPort());
      tracker_.emplace(
          *options_.tracker, options_.key,
          Advertised{advertised.host,
                     advertised.port != 0 ? advertised.port : listener_->address().port},
          log_);
    }
    reception_.emplace(
        *listener_, sessions_, options_,
        [this](const std::string& key) {
          return tracker_ ? tracker_->take(key) : key == options_.key;
        },
        log_);
  }

  const HostPort& address() const { return proxy_ ? proxy_->address() : listener_->address(); }

  void run(int stop_fd) {
    log_listening();
    while (true) {
      PollSet polls;
      polls.watch(stop_fd, POLLIN);
      if (reception_) reception_->prepare(polls);
      if (tracker_) tracker_->prepare(polls);
      if (proxy_) proxy_->prepare(polls);
      sessions_.prepare(polls);
      polls.wait();
      if (polls.is_ready(stop_fd)) break;
      step(Clock::now());
    }
    sessions_.stop();
    log_({ServerEvent::Kind::kStopped, false, "", 0, "stopped"});
  }

 private:
  // A session has no use for the key, and whoever it serves could read its memory.
  SessionBody without_key(SessionBody body) {
    return [this, body = std::move(body)](const SessionStart& start) {
      if (!options_.auth_key.empty()) {
        ::explicit_bzero(options_.auth_key.data(), options_.auth_key.size());
      }
      return body(start);
    };
  }

  void step(TimePoint now) {
    sessions_.step(now);
    if (reception_) reception_->step(now);
    if (tracker_) {
      tracker_->set_free_slots(sessions_.free_slots() - reception_->waiting());
      tracker_->step(now);
    }
    if (proxy_) proxy_->step(now);
  }

  void log_listening() const {
    if (!listener_) return;
    ServerEvent event{ServerEvent::Kind::kListening, false, "", 0,
                      "listening on " + to_text(listener_->address())};
    if (!listener_->is_loopback() && options_.auth_key.empty()) {
      event.warning = true;
      event.message += ": whoever reaches this port can run code here as this user, since there is "
                       "no auth key";
    }
    log_(event);
  }

  ServerOptions options_;
  EventLog log_;
  SessionTable sessions_;
  std::optional<Listener> listener_;
  std::optional<Reception> reception_;
  std::optional<TrackerClient> tracker_;
  std::optional<ProxyClient> proxy_;
};

Server::Server(ServerOptions options, EventLog log, std::function<void(Registry&)> add_functions) {
  SessionBody body = make_session_body(options, std::move(add_functions));
  impl_ = std::make_unique<Impl>(std::move(options), std::move(log), std::move(body));
}

Server::Server(ServerOptions options, EventLog log, SessionBody body)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(log), std::move(body))) {}

Server::~Server() = default;

const HostPort& Server::address() const { return impl_->address(); }

void Server::run(int stop_fd) { impl_->run(stop_fd); }

}  // namespace run_model::rpc
