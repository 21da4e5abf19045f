// The sessions of a server under test.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/rpc/server/running_server.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;

void loop_for_ever() {
  for (volatile bool on = true; on;) {
  }
}

void answer(int socket, const std::string& text) {
  static_cast<void>(!::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
}

std::string surroundings() {
  std::string text = "fds:";
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    // The listing's own descriptor is gone by now, or shows the listing.
    if (!error && target.find("/fd") == target.npos) text += " " + entry.path().filename().string();
  }
  rlimit core{};
  rlimit file{};
  ::getrlimit(RLIMIT_CORE, &core);
  ::getrlimit(RLIMIT_FSIZE, &file);
  text += " core:" + std::to_string(core.rlim_max) + " file:" + std::to_string(file.rlim_cur);
  text += std::string(" group:") + (::getpgrp() == ::getpid() ? "own" : "shared");
  return text + " folder:" + (fs::is_empty(fs::current_path()) ? "empty" : "used") + "\n";
}

void fill_memory(bool shared) {
  for (int i = 0; i < 200; ++i) {
    constexpr std::size_t kStep = std::size_t{4} << 20;
    void* memory = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE,
                          (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    std::memset(memory, 1, kStep);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void leave_a_daemon(int socket) {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  answer(socket, std::to_string(::getpid()) + "\n");
  loop_for_ever();
}

// What a session that means ill would try.
std::string reach_out(int own_socket) {
  const auto can_write = [](const fs::path& path) {
    const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return file ? "yes" : "no";
  };
  std::string text = std::string("own:") + can_write("file") + " null:" + can_write("/dev/null") +
                     " beside:" + can_write("../beside");
  // The server, by the address that the client has reached it at.
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(own_socket, reinterpret_cast<sockaddr*>(&address), &length);
  const OwnedFd out(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected =
      ::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  return text + " connect:" + (connected ? "yes" : "no") +
         " signal:" + (::kill(::getppid(), 0) == 0 ? "yes" : "no") + "\n";
}

SessionEnd obey(const SessionStart& start, char command) {
  SessionProgress& progress = *start.progress;
  progress.set_doing("function test of TestModel");
  switch (command) {
    case 's':
      ::raise(SIGSEGV);
      break;
    case 'i':
      ::raise(SIGILL);
      break;
    case 'x':
      std::_Exit(3);
    case 'l':
      loop_for_ever();
      break;
    case 'a':  // part of an answer
      progress.set_phase(SessionPhase::kAnswering);
      answer(start.socket, "part");
      ::raise(SIGSEGV);
      break;
    case 'b':
      return SessionEnd::kBroken;
    case 'c':  // a child in a sleep of its own
      if (::fork() == 0) loop_for_ever();
      break;
    case 'm':
    case 'p':
      fill_memory(command == 'm');
      answer(start.socket, "no memory\n");
      break;
    case 'n':  // what C++ and C say before they abort, without the end of a line
      std::fputs("terminate called after throwing", stderr);
      ::raise(SIGABRT);
      break;
    case 'd':  // a daemon, which has left the session's group; its number goes to the client
      leave_a_daemon(start.socket);
      break;
    case 't':
      answer(start.socket,
             std::string(fs::temp_directory_path() == fs::current_path() ? "own" : "other"));
      break;
    case 'u':
      answer(start.socket, reach_out(start.socket));
      break;
    case 'o':
      std::puts("from the model\x1b[2J");
      std::fflush(stdout);
      start.log("said by the session");
      break;
    case 'f':
      fs::create_directories("a/b");
      fs::create_symlink("/etc", "a/link");
      break;
    case 'w':
      answer(start.socket, surroundings());
      break;
    default:
      answer(start.socket, std::string(1, command));
  }
  return SessionEnd::kShutdown;
}

}  // namespace

SessionEnd obey_all(const SessionStart& start) {
  char command = 0;
  while (::recv(start.socket, &command, 1, 0) == 1) {
    if (command == 'q') return SessionEnd::kShutdown;
    start.progress->begin_request();
    start.progress->set_phase(SessionPhase::kReceiving);
    if (obey(start, command) == SessionEnd::kBroken) return SessionEnd::kBroken;
    start.progress->set_phase(SessionPhase::kWaiting);
  }
  return SessionEnd::kDisconnected;
}

}  // namespace run_model::rpc
