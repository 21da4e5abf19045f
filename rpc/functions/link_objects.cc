#include "rpc/functions/link_objects.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "artifacts/formats/deflate.h"
#include "artifacts/formats/tar.h"
#include "base/mapped_file.h"
#include "base/system_file.h"
#include "base/text.h"
#include "base/write_file.h"

extern char** environ;

namespace run_model::rpc {
namespace {

constexpr std::size_t kMostObjects = 1024;

// Of an archive that is packed: objects with the weights of any network that a board runs.
constexpr std::size_t kMostUnpackedBytes = std::size_t{1} << 30;

// How much of what the compiler says goes into the error.
constexpr std::size_t kMostWords = 2000;

#if defined(__x86_64__)
constexpr char kCrossCompiler[] = "x86_64-linux-gnu-g++";
#elif defined(__aarch64__)
constexpr char kCrossCompiler[] = "aarch64-linux-gnu-g++";
#elif defined(__arm__)
constexpr char kCrossCompiler[] = "arm-linux-gnueabihf-g++";
#elif defined(__riscv)
constexpr char kCrossCompiler[] = "riscv64-linux-gnu-g++";
#else
constexpr char kCrossCompiler[] = "the cross compiler for this board";
#endif

bool is_program(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

// Empty where there is none.
std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path program = std::filesystem::path(folders.substr(0, end)) / name;
    if (end > 0 && is_program(program)) return program;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return {};
}

std::filesystem::path find_compiler() {
  if (const char* chosen = std::getenv("CXX"); chosen != nullptr && *chosen != '\0') {
    return find_program(chosen);
  }
  for (const char* name : {"c++", "g++", "clang++", "cc", "gcc", "clang"}) {
    if (std::filesystem::path program = find_program(name); !program.empty()) return program;
  }
  return {};
}

// A folder that goes away with all that is in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& beside) {
    std::string name = beside.string() + ".link.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::kFile,
                  "no folder can be made for linking: " + std::string(std::strerror(errno)));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Members get names of ours: theirs are the client's, and could pass for a compiler's flag.
std::vector<std::string> unpack(const std::filesystem::path& archive,
                                const std::filesystem::path& folder) {
  const auto file = MappedFile::open(archive, "archive");
  const std::string described = "archive " + path_in_quotes(archive.filename());
  // export_library packs archives with gzip, though their names do not say so.
  std::vector<std::byte> unpacked;
  std::span<const std::byte> bytes = file->bytes();
  if (is_gzip(bytes)) bytes = unpacked = gunzip(bytes, kMostUnpackedBytes, described);
  const TarReader tar(bytes, described);
  std::vector<std::string> objects;
  for (const TarEntry& entry : tar.entries()) {
    const std::string extension = std::filesystem::path(entry.name).extension();
    if (extension != ".o" && extension != ".c" && extension != ".cc" && extension != ".cpp") {
      throw Error(ErrorKind::kFormat,
                  described + " holds " + in_quotes(entry.name) + ", expected objects (.o) only",
                  "modules for other devices than the CPU cannot be linked here");
    }
    if (objects.size() >= kMostObjects) {
      throw Error(ErrorKind::kFormat,
                  described + " holds more than " + std::to_string(kMostObjects) + " files");
    }
    const std::filesystem::path object = folder / (std::to_string(objects.size()) + extension);
    write_file(object, {entry.bytes});
    objects.push_back(object);
  }
  if (objects.empty()) {
    throw Error(ErrorKind::kFormat, described + " is empty, expected objects");
  }
  return objects;
}

// Runs a program with its output in `words_file`; its exit status, -1 when a signal ended it.
int run_program(const std::vector<std::string>& command, const std::filesystem::path& words_file) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, words_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw Error(ErrorKind::kFile, "the compiler " + in_quotes(command[0]) +
                                      " cannot be started: " + std::strerror(failure));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::filesystem::path link_objects(const std::filesystem::path& input,
                                   const std::filesystem::path& output) {
  const std::filesystem::path compiler = find_compiler();
  if (compiler.empty()) {
    throw Error(
        ErrorKind::kIncompatible,
        path_in_quotes(input.filename()) +
            " holds object files, and this board has no compiler to link them with",
        "link on the host: lib.export_library(\"net.so\", "
        "fcompile=tvm.contrib.cc.cross_compiler(\"" +
            std::string(kCrossCompiler) +
            "\")); for AutoTVM give LocalBuilder a build_func that does this (rpc/README.md)");
  }
  const ScratchFolder scratch(output);
  std::vector<std::string> command{compiler, "-shared", "-fPIC", "-o",
                                   (scratch.path() / "out.so").string()};
  const std::vector<std::string> objects =
      input.extension() == ".tar" ? unpack(input, scratch.path()) : std::vector<std::string>{input};
  command.insert(command.end(), objects.begin(), objects.end());
  const std::filesystem::path words = scratch.path() / "words";
  if (const int status = run_program(command, words); status != 0) {
    throw Error(ErrorKind::kMismatch,
                "the compiler " + path_in_quotes(compiler) + " could not link " +
                    path_in_quotes(input.filename()) + " (exit code " + std::to_string(status) +
                    "): " + in_quotes(read_system_file(words, kMostWords), kMostWords));
  }
  std::filesystem::rename(scratch.path() / "out.so", output);
  return output;
}

}  // namespace run_model::rpc
