#include "runtime/loading/library_check.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/backend_api.h"
#include "runtime/elf/loadable.h"
#include "runtime/relax/library_blob.h"

namespace run_model {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kOtherTvm =
    "recompile the model with TVM 0.27 or older, for target \"llvm\"";

bool is_function(const ElfSymbol& symbol) {
  return symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
}

bool any_symbol(const ElfFile& file, auto&& predicate) {
  const auto symbols = file.symbols();
  return std::any_of(symbols.begin(), symbols.end(), predicate);
}

bool begins_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// What a machine mismatch is about, in the order of what a person would look at first.
void check_target(const ElfFile& file, const Host& host) {
  const ElfTarget& found = file.target();
  const ElfTarget& expected = host.target;
  if (target_fits(found, expected)) return;
  const std::string triple = target_triple(expected);
  throw Error(ErrorKind::kIncompatible,
              file.source() + " is compiled for " + target_name(found) + ", but this machine is " +
                  target_name(expected),
              "take the artifact for this machine, or compile one with the target " +
                  (triple.empty() ? "of this machine" : "\"llvm -mtriple=" + triple + "\""));
}

void check_kind(const ElfFile& file) {
  switch (library_kind(file)) {
    case LibraryKind::kTvm:
    case LibraryKind::kEmpty:
    case LibraryKind::kTvm021:
    case LibraryKind::kTvm022:
      return;
    case LibraryKind::kTvmItself:
      throw Error(ErrorKind::kFormat,
                  file.source() + " is TVM's own library, expected a compiled model",
                  "give the .so file that lib.export_library() or compile_model wrote");
    case LibraryKind::kOther:
      throw Error(ErrorKind::kFormat,
                  file.source() + " has no function that TVM compiled, expected a compiled model",
                  "give the .so file that lib.export_library() or compile_model wrote");
  }
}

// The version that a "GLIBC_…" entry stands for. Packed relative relocations (DT_RELR) came
// with 2.36.
std::optional<GlibcVersion> needed_glibc(std::string_view version) {
  if (version == "GLIBC_ABI_DT_RELR") {
    return GlibcVersion{2, 36};
  }
  if (!version.starts_with("GLIBC_")) {
    return std::nullopt;
  }
  return parse_glibc_version(version.substr("GLIBC_"sv.size()));
}

void check_glibc(const ElfFile& file, const Host& host) {
  std::optional<GlibcVersion> newest;
  for (const ElfVersionNeed& need : file.version_needs()) {
    if (const auto version = needed_glibc(need.version);
        version && (!newest || *version > *newest)) {
      newest = version;
    }
  }
  if (!newest || (host.glibc && *newest <= *host.glibc)) {
    return;
  }
  const std::string needed = std::to_string(newest->major) + "." + std::to_string(newest->minor);
  const std::string message =
      file.source() + " needs the GNU C library " + needed + " or later, but this machine has ";
  if (!host.glibc) {
    throw Error(ErrorKind::kIncompatible, message + "another C library",
                "link the model with this system's own C compiler");
  }
  throw Error(ErrorKind::kIncompatible,
              message + std::to_string(host.glibc->major) + "." + std::to_string(host.glibc->minor),
              "compile the model on a system as old as this one, or with its sysroot");
}

void check_needed_libraries(const ElfFile& file) {
  for (const std::string_view library : file.needed()) {
    if (library.starts_with("libtvm")) {
      throw Error(ErrorKind::kIncompatible,
                  file.source() + " is linked with TVM's own runtime (" + in_quotes(library) +
                      "), which run_model takes the place of",
                  "export the model without linking it to " + std::string(library));
    }
  }
}

// A pointer variable that TVM's loader fills in with the function of that name.
void check_slots(const ElfFile& file) {
  const auto known = exported_symbols();
  for (const ElfSymbol& symbol : file.symbols()) {
    if (!symbol.defined || symbol.type != STT_OBJECT || !symbol.name.starts_with("__TVM")) {
      continue;
    }
    const std::string_view function = symbol.name.substr(2);
    if (std::none_of(known.begin(), known.end(),
                     [&](const ExportedSymbol& s) { return s.name == function; })) {
      throw Error(ErrorKind::kIncompatible,
                  file.source() + " calls " + in_quotes(function) +
                      ", a function of TVM's runtime that run_model has not",
                  kOtherTvm);
    }
  }
}

// What a library registers its functions with that is to be linked into a program.
constexpr std::string_view kRegisterSystemLibrary = "TVMFFIEnvModRegisterSystemLibSymbol";

// Libraries that are loaded have it too, where the code was not optimized, but their modules are
// where they are looked for.
void check_system_library(const ElfFile& file) {
  const bool registers =
      any_symbol(file, [](const ElfSymbol& s) { return s.name == kRegisterSystemLibrary; });
  if (!registers || file.find(kRelaxBlob) != nullptr) return;
  throw Error(ErrorKind::kIncompatible,
              file.source() + " is a system library of TVM's, which is to be linked into a "
                              "program that has TVM's runtime, and not to be loaded",
              "compile it without system_lib=True and without the attribute system_lib_prefix");
}

void check_host_symbols(const ElfFile& file, const Host& host) {
  constexpr std::size_t kShown = 5;
  const auto missing = missing_symbols(file, host);
  if (missing.empty()) {
    return;
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, missing.size()); ++i) {
    list += (i == 0 ? "" : ", ") + in_quotes(missing[i]);
  }
  if (missing.size() > kShown) {
    list += " and " + std::to_string(missing.size() - kShown) + " more";
  }
  const auto known = exported_symbols();
  const bool own = std::any_of(missing.begin(), missing.end(), [&](std::string_view name) {
    return std::any_of(known.begin(), known.end(),
                       [name](const ExportedSymbol& s) { return s.name == name; });
  });
  throw Error(
      ErrorKind::kIncompatible,
      file.source() + " needs functions that are nowhere to be found: " + list,
      own ? "this program does not export run_model's own functions to the libraries that it "
            "loads; link it through CMake's target run_model::runtime"
          : "compile the model without external libraries (-libs=…), or link it with the one "
            "that has them");
}

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

LibraryKind library_kind(const ElfFile& file) {
  if (file.find("TVMFuncListGlobalNames") != nullptr ||
      file.find("TVMModLoadFromFile") != nullptr || file.find("TVMFFIFunctionCall") != nullptr ||
      file.find("TVMFFIObjectDecRef") != nullptr) {
    return LibraryKind::kTvmItself;
  }
  if (any_symbol(file, [](const ElfSymbol& s) {
        return s.defined && is_function(s) && s.name.starts_with(kFfiPrefix);
      })) {
    return LibraryKind::kTvm022;
  }
  constexpr std::array kFfi = {"__tvm_ffi_"sv, "__TVMFFI"sv, "TVMFFI"sv};
  if (any_symbol(file, [&](const ElfSymbol& s) { return begins_with_any(s.name, kFfi); })) {
    return LibraryKind::kTvm021;
  }
  // Slots and markers, calls by name (C code generator), and what TVM calls its functions.
  constexpr std::array kTvm = {
      "__TVM"sv,  "__tvm_"sv,  "TVMBackend"sv,       "TVMAPISetLastError"sv,
      "fused_"sv, "tvmgen_"sv, "default_function"sv, "_lookup_linked_param"sv};
  if (any_symbol(file, [&](const ElfSymbol& s) { return begins_with_any(s.name, kTvm); })) {
    return LibraryKind::kTvm;
  }
  return compiled_functions(file).empty() ? LibraryKind::kEmpty : LibraryKind::kOther;
}

std::vector<std::string_view> compiled_functions(const ElfFile& file) {
  std::vector<std::string_view> functions;
  for (const ElfSymbol& symbol : file.symbols()) {
    const bool of_compiler = symbol.name.starts_with("__") && !symbol.name.starts_with(kFfiPrefix);
    if (symbol.defined && symbol.visible && is_function(symbol) && !of_compiler &&
        symbol.name != "_init" && symbol.name != "_fini") {
      functions.push_back(symbol.name);
    }
  }
  return functions;
}

std::vector<std::string_view> missing_symbols(const ElfFile& file, const Host& host) {
  std::vector<std::string_view> missing;
  for (const ElfSymbol& symbol : file.symbols()) {
    // Symbols with a version are looked for in one library, whose versions the loader compares.
    if (symbol.defined || symbol.weak || !symbol.visible || symbol.version > VER_NDX_GLOBAL) {
      continue;
    }
    if (host.find_symbol(std::string(symbol.name), file.needed()) == SymbolSearch::kMissing) {
      missing.push_back(symbol.name);
    }
  }
  return missing;
}

void check_library(const ElfFile& file, const Host& host) {
  check_target(file, host);
  check_loadable(file);
  check_kind(file);
  check_glibc(file, host);
  check_needed_libraries(file);
  check_slots(file);
  check_system_library(file);
  check_host_symbols(file, host);
}

// The messages are those of glibc (dl-load, dl-version and dl-lookup in its elf folder); others are
// passed on.
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
