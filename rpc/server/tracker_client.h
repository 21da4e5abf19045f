// Keeps the server registered with TVM's tracker.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <run_model/rpc/server.h>
#include "rpc/server/outgoing_connection.h"
#include "rpc/server/tracker_messages.h"

namespace run_model::rpc {

// While the tracker is away, it is tried again and again; when it is back, which may be a new one
// that knows nothing, everything is registered anew.
class TrackerClient {
 public:
  TrackerClient(HostPort tracker, std::string key, Advertised advertised, EventLog log);

  // Whether a client with that key was sent by the tracker. True once for each key.
  bool take(const std::string& matchkey) { return keys_.take(matchkey); }

  // How many sessions could be started: as many keys the tracker is given.
  void set_free_slots(int count) { free_slots_ = count; }

  void prepare(PollSet& polls) const;
  void step(TimePoint now);

 private:
  enum class Answer { kSuccess, kMatchkeys };
  struct Request {
    ByteVector bytes;
    Answer answer;
  };

  void log(bool warning, std::string message) const;
  void begin(TimePoint now);
  void lose(TimePoint now, const std::string& why);
  void fill_up();
  void send(TimePoint now);
  void receive(TimePoint now);
  bool take_message(TimePoint now);
  void handle(const std::string& json, TimePoint now);

  OutgoingConnection connection_;
  std::string key_;
  Advertised advertised_;
  EventLog log_;
  Matchkeys keys_;
  int free_slots_ = 0;
  bool told_ = false;        // the log knows that the tracker is away
  bool registered_ = false;  // it has answered update_info
  bool magic_seen_ = false;
  std::deque<Request> requests_;  // still to be sent
  ByteVector sending_;
  std::optional<Answer> awaited_;
  TimePoint answer_deadline_{};
  TimePoint next_question_{};
  ByteVector received_;
};

}  // namespace run_model::rpc
