#include "tests/rpc/server/running_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>

#include "rpc/server/handshake.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{20};

std::size_t count_entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// The server's process: its port, and then the log, go into files that the test reads.
[[noreturn]] void serve(const SessionBody& body, const ServerOptions& options, const fs::path& log,
                        int port_fd, int stop_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const int fd = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    Server server(
        options,
        [fd](const ServerEvent& event) {
          const std::string line = std::to_string(event.session) + " " + event.message + "\n";
          static_cast<void>(!::write(fd, line.data(), line.size()));
        },
        body);
    const int port = server.address().port;
    static_cast<void>(!::write(port_fd, &port, sizeof(port)));
    server.run(stop_fd);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

RunningServer::RunningServer(const SessionBody& body, ServerOptions options) {
  if (!options.proxy) options.port = 0;
  options.work_folder = folder_ / "work";
  fs::create_directory(options.work_folder);
  folder_.write("log", "");
  std::array<int, 2> port_pipe{};
  std::array<int, 2> stop_pipe{};
  if (::pipe2(port_pipe.data(), O_CLOEXEC) != 0 || ::pipe2(stop_pipe.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  const OwnedFd port_read(port_pipe[0]);
  OwnedFd port_write(port_pipe[1]);
  const OwnedFd stop_read(stop_pipe[0]);
  stop_ = OwnedFd(stop_pipe[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    stop_.reset();
    serve(body, options, folder_ / "log", port_write.get(), stop_read.get());
  }
  port_write.reset();
  if (::read(port_read.get(), &port_, sizeof(port_)) != sizeof(port_)) {
    throw std::runtime_error("the server has not started");
  }
}

RunningServer::~RunningServer() {
  stop_.reset();  // the server sees the end of the pipe
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(count_entries(folder_ / "work"), 0u) << log();
}

std::size_t RunningServer::open_descriptors() const {
  return count_entries("/proc/" + std::to_string(pid_) + "/fd");
}

std::size_t RunningServer::session_folders() const {
  return count_entries(fs::directory_iterator(folder_ / "work")->path());
}

bool RunningServer::wait_for_log(const std::string& text) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (log().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

TestClient::TestClient(int port, const char* source)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = ::inet_addr(source);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
    throw std::runtime_error(std::string("no socket for ") + source);
  }
  const timeval limit{kPatience.count(), 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("cannot connect to the server");
  }
}

int TestClient::shake_hands(const std::string& key) {
  ByteVector hello;
  append_number<std::int32_t>(hello, kRpcMagic);
  append_key(hello, key);
  send({reinterpret_cast<const char*>(hello.data()), hello.size()});
  const std::string code = receive(4);
  if (code.size() != 4) return -1;
  int number = 0;
  std::memcpy(&number, code.data(), sizeof(number));
  if (number != kRpcMagic) return number;
  std::int32_t length = 0;
  std::memcpy(&length, receive(4).data(), sizeof(length));
  receive(static_cast<std::size_t>(length));
  return number;
}

void TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string TestClient::receive(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t length = 0;
  while (length < bytes) {
    const ssize_t got = ::recv(socket_.get(), text.data() + length, bytes - length, 0);
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

std::string TestClient::receive_line() {
  std::string line;
  for (std::string next = receive(1); !next.empty() && next != "\n"; next = receive(1))
    line += next;
  return line;
}

std::string TestClient::receive_exception() {
  const std::string head = receive(8 + 4 + 4 + 4 + 8);
  if (head.size() != 28) return "";
  const auto bytes = std::as_bytes(std::span(head));
  const auto length = number_at<std::uint64_t>(bytes, 20);
  const bool is_exception =
      number_at<std::int32_t>(bytes, 8) == 5 && number_at<std::int32_t>(bytes, 12) == 1 &&
      number_at<std::int32_t>(bytes, 16) == 11 && number_at<std::uint64_t>(bytes, 0) == 20 + length;
  return is_exception ? receive(static_cast<std::size_t>(length)) : "";
}

}  // namespace run_model::rpc
