#include "runtime/relax/called_names.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/loading/library_check.h"
#include "runtime/relax/functions/builtins.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/relax/library_blob.h"

namespace run_model {
namespace {

constexpr std::string_view kPrefixes[] = {"vm.builtin.", "relax.run.", "tvm.contrib.",
                                          "runtime.disco."};

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// Names are whole texts: what stands inside of another, as in a message, is none.
void add_names(std::string_view text, std::vector<std::string>& names) {
  for (const std::string_view prefix : kPrefixes) {
    for (std::size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
      if (at > 0 && std::isprint(static_cast<unsigned char>(text[at - 1])) != 0) continue;
      std::size_t end = at;
      while (end < text.size() && is_of_name(text[end])) ++end;
      if (end == text.size() || text[end] != '\0' || end == at + prefix.size()) continue;
      std::string name(text.substr(at, end - at));
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
  }
}

// Where the executable lies, whose texts are its own and are looked up with it.
std::span<const std::byte> executable_bytes(const ElfFile& elf) {
  const ElfSymbol* symbol = elf.find(kRelaxBlob);
  if (symbol == nullptr) symbol = elf.find(kRelaxBlob021);
  return symbol == nullptr ? std::span<const std::byte>() : elf.bytes_of(*symbol);
}

}  // namespace

std::vector<std::string> called_names(const ElfFile& elf, std::span<const std::byte> file) {
  const auto constant = [](const ElfSegment& segment, bool with_code) {
    return segment.type == PT_LOAD && (segment.flags & PF_W) == 0 &&
           (with_code || (segment.flags & PF_X) == 0);
  };
  // Some linkers lay constants beside the code, which there is no need to read otherwise.
  const bool apart =
      std::any_of(elf.segments().begin(), elf.segments().end(),
                  [&](const ElfSegment& segment) { return constant(segment, false); });
  const std::span<const std::byte> blob = executable_bytes(elf);
  const auto blob_begin =
      blob.empty() ? file.size() : static_cast<std::size_t>(blob.data() - file.data());
  const std::size_t blob_end = blob_begin + blob.size();
  std::vector<std::string> names;
  const auto add = [&](std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    add_names({reinterpret_cast<const char*>(file.data()) + begin, end - begin}, names);
  };
  for (const ElfSegment& segment : elf.segments()) {
    if (!constant(segment, !apart) || segment.offset >= file.size()) continue;
    const auto begin = static_cast<std::size_t>(segment.offset);
    const std::size_t end = begin + static_cast<std::size_t>(std::min<std::uint64_t>(
                                        segment.file_bytes, file.size() - begin));
    add(begin, std::min(end, blob_begin));
    add(std::max(begin, blob_end), end);
  }
  return names;
}

void check_called_names(const RelaxExecutable& executable, const ElfFile& elf,
                        std::span<const std::byte> file) {
  const std::string prefix = library_kind(elf) == LibraryKind::kTvm022 ? kFfiPrefix : "";
  std::vector<std::string> names;
  for (const RelaxFunction& function : executable.functions) {
    if (function.kind == RelaxFunctionKind::kPacked) names.push_back(function.name);
  }
  std::ranges::move(called_names(elf, file), std::back_inserter(names));
  for (const std::string& name : names) {
    if (elf.find(prefix + name) != nullptr || find_runtime_function(name) != nullptr ||
        find_builtin(name) != nullptr) {
      continue;
    }
    throw unknown_function(elf.source(), name);
  }
}

}  // namespace run_model
