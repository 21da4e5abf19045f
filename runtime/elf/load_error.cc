#include "runtime/elf/load_error.h"

#include <string>

#include "base/text.h"

namespace run_model {
namespace {

// The text between two markers, or nothing.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = text.substr(begin + before.size());
  return after.empty() ? rest : rest.substr(0, rest.find(after));
}

}  // namespace

// The messages are glibc's (elf/dl-load.c, dl-version.c, dl-lookup.c); others are passed on.
Error load_error(const ElfFile& file, const Host& host, std::string_view reason) {
  const ErrorKind code = ErrorKind::kIncompatible;
  if (const std::size_t end = reason.find(": cannot open shared object file");
      end != std::string_view::npos) {
    return Error(code,
                 file.source() + " needs the library " + in_quotes(reason.substr(0, end)) +
                     ", which is not installed on this machine",
                 "install it, name its folder in LD_LIBRARY_PATH, or compile the model without "
                 "external libraries (-libs=…)");
  }
  if (const std::string_view version = between(reason, "version `", "'"); !version.empty()) {
    const std::string library(reason.substr(0, reason.find(": version `")));
    return Error(code,
                 file.source() + " needs version " + in_quotes(version) + " of " +
                     in_quotes(library) + ", which this machine's does not have",
                 "compile the model on a system as old as this one, or with its sysroot");
  }
  if (const std::string_view symbol = between(reason, "undefined symbol: ", ""); !symbol.empty()) {
    return Error(code,
                 file.source() + " needs the function " +
                     in_quotes(symbol.substr(0, symbol.find(','))) +
                     ", which neither run_model nor the libraries that it names have",
                 "compile the model without external libraries (-libs=…), or link it with the one "
                 "that has it");
  }
  if (reason.find("failed to map segment") != std::string_view::npos) {
    return Error(code, file.source() + " cannot be loaded: " + std::string(reason),
                 "see whether it lies on a file system mounted with 'noexec'");
  }
  return Error(code,
               file.source() + " cannot be loaded on this machine (" + target_name(host.target) +
                   "): " + (reason.empty() ? "the loader gives no reason" : std::string(reason)));
}

}  // namespace run_model
