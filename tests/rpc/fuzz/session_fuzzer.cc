// A session that reads whatever bytes, for libFuzzer; rpc/README.md says how it is built and run.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <run_model/rpc/session.h>
#include "rpc/functions/builtin.h"

namespace run_model::rpc {
namespace {

// What a session can do lies open to the bytes, but for loading libraries, which is running code.
class Functions {
 public:
  Functions() {
    std::string name = (std::filesystem::temp_directory_path() / "session_fuzzer.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
    folder_ = std::make_unique<SessionFolder>(path_, 1 << 16);
    add_file_functions(registry_, *folder_);
    registry_.add("echo", [](const Arguments& arguments) { return arguments[0]; });
    registry_.add("array", [](const Arguments& arguments) -> Value {
      return ArrayResult{arguments.tensor(0).tensor};
    });
    registry_.add("function", [](const Arguments& arguments) -> Value {
      return make_function("inner", [value = arguments[0]](const Arguments&) { return value; });
    });
  }
  ~Functions() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  const Registry& registry() const { return registry_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<SessionFolder> folder_;
  Registry registry_;
};

void run_session(const std::uint8_t* data, std::size_t size) {
  static const Functions functions;
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) std::abort();
  std::thread client([&] {
    std::thread sender([&] {
      for (std::size_t sent = 0; sent < size;) {
        const ssize_t count = ::send(sockets[0], data + sent, size - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
      }
      ::shutdown(sockets[0], SHUT_WR);
    });
    std::array<char, 4096> answers;
    while (::recv(sockets[0], answers.data(), answers.size(), 0) > 0) {
    }
    ::shutdown(sockets[0], SHUT_RDWR);
    sender.join();
  });
  SessionOptions options;
  options.functions = &functions.registry();
  options.limits = {
      .message_bytes = 1 << 16, .allocation_bytes = 1 << 16, .handles = 64, .spin_microseconds = 0};
  serve_session(sockets[1], options);
  ::shutdown(sockets[1], SHUT_RDWR);
  client.join();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

}  // namespace
}  // namespace run_model::rpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run_model::rpc::run_session(data, size);
  return 0;
}
