#include "tests/run_model/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string_view>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

// In the child, between fork and exec.
void redirect(const char* file, int flags, int target) {
  const int fd = ::open(file, flags, 0600);
  if (fd < 0 || ::dup2(fd, target) < 0) ::_exit(126);
  ::close(fd);
}

// The command that runs a program of the machine that this was built for: none where that is this
// machine, otherwise CMAKE_CROSSCOMPILING_EMULATOR with | between its words.
std::vector<std::string> emulator() {
  std::vector<std::string> words;
  std::string_view rest = RUN_MODEL_EMULATOR;
  while (!rest.empty()) {
    const std::size_t length = rest.find('|');
    words.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length == rest.npos ? rest.size() : length + 1);
  }
  return words;
}

}  // namespace

ProgramResult spawn(const std::string& program, const std::vector<std::string>& args,
                    const std::string& out_file, const std::string& in_file,
                    const std::function<void(pid_t)>& meanwhile) {
  const TemporaryFolder folder;
  const std::string out = out_file.empty() ? (folder / "out").string() : out_file;
  const std::string err = (folder / "err").string();
  std::vector<std::string> command = emulator();
  command.push_back(program);
  command.insert(command.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    redirect(in_file.c_str(), O_RDONLY, STDIN_FILENO);
    redirect(out.c_str(), O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err.c_str(), O_WRONLY | O_CREAT, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (meanwhile) meanwhile(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("cannot wait for " + program);
  }
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (out_file.empty()) result.out = TemporaryFolder::read(out);
  result.err = TemporaryFolder::read(err);
  return result;
}

}  // namespace run_model
