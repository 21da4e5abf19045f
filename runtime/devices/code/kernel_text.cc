#include "runtime/devices/code/kernel_text.h"

#include <algorithm>
#include <cstddef>

namespace run_model {
namespace {

constexpr std::string_view kMarker = "// Function: ";

constexpr std::string_view kElfMagic{"\x7f"
                                     "ELF",
                                     4};
constexpr std::string_view kFatbinMagic{"\x50\xed\x55\xba", 4};

// SPIR-V specification, 2.3 and 3: header and opcodes.
constexpr std::uint32_t kSpirvMagic = 0x07230203;
constexpr std::size_t kSpirvHeaderWords = 5;
constexpr std::uint32_t kNewestSpirv = 0x00010600;
constexpr std::uint32_t kOpEntryPoint = 15;
constexpr std::uint32_t kGlCompute = 5;

// Of PTX identifiers.
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Of a literal, which is zero-terminated text in words of four characters, the first in the lowest
// byte; compared up to its end or that of `words`.
bool is_literal(std::span<const std::uint32_t> words, std::string_view text) {
  for (std::size_t i = 0; i / 4 < words.size(); ++i) {
    const char c = static_cast<char>(words[i / 4] >> 8 * (i % 4) & 0xff);
    if (i == text.size()) return c == '\0';
    if (c != text[i]) return false;
  }
  return false;
}

}  // namespace

std::vector<OpenClPiece> split_opencl(std::string_view source) {
  std::vector<std::size_t> starts;
  for (std::size_t at = source.find(kMarker); at != source.npos;
       at = source.find(kMarker, at + 1)) {
    if (at == 0 || source[at - 1] == '\n') starts.push_back(at);
  }
  std::vector<OpenClPiece> pieces;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : source.size();
    const std::string_view text = source.substr(starts[i], end - starts[i]);
    std::string_view name = text.substr(kMarker.size());
    name = name.substr(0, name.find_first_of("\r\n"));
    pieces.push_back({name, text});
  }
  return pieces;
}

std::string_view cuda_format(std::string_view code) {
  if (code.starts_with(kElfMagic)) return "cubin";
  if (code.starts_with(kFatbinMagic)) return "fatbin";
  // A generator may put a comment in front of the directive that PTX begins with.
  while (code.ends_with('\0')) code.remove_suffix(1);
  if (code.find(".version") != code.npos && code.find('\0') == code.npos) return "ptx";
  return "";
}

bool has_ptx_entry(std::string_view ptx, std::string_view kernel) {
  constexpr std::string_view kEntry = ".entry";
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at + 1)) {
    std::string_view rest = ptx.substr(at + kEntry.size());
    const auto name = std::find_if_not(rest.begin(), rest.end(), is_blank);
    if (name == rest.begin()) continue;
    rest.remove_prefix(static_cast<std::size_t>(name - rest.begin()));
    if (!rest.starts_with(kernel)) continue;
    if (rest.size() == kernel.size() || !is_name_character(rest[kernel.size()])) return true;
  }
  return false;
}

bool has_cubin_entry(std::string_view cubin, std::string_view kernel) {
  // The section of its instructions.
  std::string section = ".text.";
  section.append(kernel).push_back('\0');
  return cubin.find(section) != cubin.npos;
}

std::string spirv_problem(std::span<const std::uint32_t> words, std::string_view kernel) {
  if (words.size() < kSpirvHeaderWords || words[0] != kSpirvMagic) {
    return "does not begin like SPIR-V";
  }
  if ((words[1] & 0xff0000ffU) != 0 || words[1] < 0x00010000 || words[1] > kNewestSpirv) {
    return "is SPIR-V of a version that is not known, 1.0 to 1.6 are";
  }
  bool found = false;
  for (std::size_t at = kSpirvHeaderWords; at < words.size();) {
    const std::size_t length = words[at] >> 16;
    const std::uint32_t opcode = words[at] & 0xffff;
    if (length == 0 || length > words.size() - at) {
      return "has an instruction of " + std::to_string(length) + " words where " +
             std::to_string(words.size() - at) + " are left";
    }
    if (opcode == kOpEntryPoint && length > 3 && words[at + 1] == kGlCompute) {
      found = found || is_literal(words.subspan(at + 3, length - 3), kernel);
    }
    at += length;
  }
  return found ? "" : "has no compute shader of that name";
}

}  // namespace run_model
