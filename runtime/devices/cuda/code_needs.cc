#include "runtime/devices/cuda/code_needs.h"

#include <array>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"
#include "base/text.h"

namespace run_model::cuda {
namespace {

// The word after a directive of PTX: "8.5" of ".version 8.5".
std::string_view after_directive(std::string_view ptx, std::string_view directive) {
  constexpr std::string_view kBlank = " \t";
  for (std::size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at + 1)) {
    // Not within a comment's line.
    const std::size_t line = ptx.rfind('\n', at) + 1;
    if (ptx.substr(line, at - line).find_first_not_of(kBlank) != ptx.npos) continue;
    std::string_view rest = ptx.substr(at + directive.size());
    const std::size_t word = rest.find_first_not_of(kBlank);
    if (word == 0 || word == rest.npos) continue;
    rest.remove_prefix(word);
    return rest.substr(0, rest.find_first_of(" \t\r\n,"));
  }
  return {};
}

// A target's number, and the letter behind it for those that are not for all later GPUs: 'a' for
// this one only, 'f' for its family.
struct Target {
  Architecture architecture = 0;
  char letter = '\0';
};

std::optional<Target> ptx_target(std::string_view ptx) {
  std::string_view word = after_directive(ptx, ".target");
  if (!word.starts_with("sm_")) return std::nullopt;
  word.remove_prefix(3);
  const std::optional<unsigned> number = take_number<unsigned>(word);
  if (!number) return std::nullopt;
  return Target{*number, word.empty() ? '\0' : word[0]};
}

// From e_flags, whose layout goes by e_ident's ABI version: 7 up to CUDA 12, 8 after (LLVM's
// BinaryFormat/ELF.h, EF_CUDA_SM and EF_CUDA_SM_MASK).
std::optional<Target> cubin_target(std::string_view cubin) {
  constexpr std::uint64_t kAbiVersionAt = 8;
  constexpr std::uint64_t kFlagsAt = 48;
  const ByteReader reader(std::as_bytes(std::span(cubin)), "the CUDA code");
  const auto abi = reader.find_number(kAbiVersionAt, 1);
  const auto flags = reader.find_number(kFlagsAt, 4);
  if (!abi || !flags) return std::nullopt;
  const auto number = static_cast<Architecture>(*abi >= 8 ? *flags >> 8 & 0xff : *flags & 0xff);
  if (number < 20) return std::nullopt;
  return Target{number};
}

std::optional<Target> target_of(const DeviceCode& code) {
  if (code.format == "ptx") return ptx_target(code.data);
  if (code.format == "cubin") return cubin_target(code.data);
  return std::nullopt;
}

std::string name_of(Target target) {
  std::string name = "sm_" + std::to_string(target.architecture);
  if (target.letter != '\0') name.push_back(target.letter);
  return name;
}

}  // namespace

std::optional<PtxVersion> ptx_version(const DeviceCode& code) {
  if (code.format != "ptx") return std::nullopt;
  std::string_view word = after_directive(code.data, ".version");
  const std::optional<unsigned> major = take_number<unsigned>(word);
  if (!major || !word.starts_with('.')) return std::nullopt;
  word.remove_prefix(1);
  const std::optional<unsigned> minor = take_number<unsigned>(word);
  if (!minor) return std::nullopt;
  return PtxVersion{*major, *minor};
}

std::optional<Architecture> architecture(const DeviceCode& code) {
  const std::optional<Target> target = target_of(code);
  return target ? std::optional(target->architecture) : std::nullopt;
}

// PTX ISA manual, "Release History".
std::optional<PtxVersion> newest_ptx(int driver_version) {
  struct Row {
    int driver;
    PtxVersion ptx;
  };
  constexpr auto kRows = std::to_array<Row>(
      {{10010, {6, 4}}, {10020, {6, 5}}, {11000, {7, 0}}, {11010, {7, 1}}, {11020, {7, 2}},
       {11030, {7, 3}}, {11040, {7, 4}}, {11050, {7, 5}}, {11060, {7, 6}}, {11070, {7, 7}},
       {11080, {7, 8}}, {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}}, {12030, {8, 3}},
       {12040, {8, 4}}, {12050, {8, 5}}, {12060, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}},
       {12090, {8, 8}}, {13000, {9, 0}}});
  for (const Row& row : kRows) {
    if (row.driver == driver_version) return row.ptx;
  }
  return std::nullopt;
}

std::string architecture_problem(const DeviceCode& code, Architecture gpu) {
  const std::optional<Target> target = target_of(code);
  if (!target) return "";
  bool fits = target->architecture <= gpu;
  if (target->letter == 'a') fits = target->architecture == gpu;
  if (code.format == "cubin" || target->letter == 'f') {
    fits = fits && target->architecture / 10 == gpu / 10;
  }
  if (fits) return "";
  return "is for GPUs of architecture " + name_of(*target) +
         (code.format == "ptx" && target->letter == '\0' ? " and later" : "") +
         ", but this one is sm_" + std::to_string(gpu);
}

std::string version_name(PtxVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

}  // namespace run_model::cuda
