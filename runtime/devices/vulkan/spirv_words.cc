// Numbers are those of the SPIR-V specification 1.6, section 2.3 (layout of a module).
#include "runtime/devices/vulkan/spirv_words.h"

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::uint32_t kSwappedMagic = 0x03022307;
constexpr std::uint32_t kMaxIds = 0x3fffff;  // 2.17, universal limits

}  // namespace

SpirvWords::SpirvWords(std::span<const std::uint32_t> words, const std::string& kernel)
    : words_(words), kernel_(kernel) {
  if (words_.size() < kBegin) {
    fail(0, "it has " + std::to_string(words_.size()) + " words, and SPIR-V's header takes 5");
  }
  if (words_[0] == kSwappedMagic) fail(0, "its bytes are in big-endian order");
  if (words_[0] != kMagic) {
    fail(0, "it begins with 0x" + hex(words_[0]).substr(8) + " where SPIR-V has 0x07230203");
  }
  if ((words_[1] & 0xff0000ff) != 0 || major() != 1) {
    fail(1, "0x" + hex(words_[1]).substr(8) + " is no version of SPIR-V 1");
  }
  if (words_[3] == 0 || words_[3] > kMaxIds) {
    fail(3, std::to_string(words_[3]) + " is no bound of ids");
  }
  if (words_[4] != 0) fail(4, "the reserved word is not 0");
}

SpirvWords::Instruction SpirvWords::instruction_at(std::size_t at) const {
  const std::size_t length = words_[at] >> 16;
  if (length == 0) fail(at, "an instruction is 0 words long");
  if (length > words_.size() - at) {
    fail(at, "an instruction takes " + std::to_string(length) + " words, but only " +
                 std::to_string(words_.size() - at) + " are left");
  }
  return {words_[at] & 0xffff, at, words_.subspan(at + 1, length - 1)};
}

void SpirvWords::need(const Instruction& instruction, std::size_t count) const {
  if (instruction.operands.size() < count) {
    fail(instruction.at, "instruction " + std::to_string(instruction.op) + " has " +
                             std::to_string(instruction.operands.size()) + " operands of " +
                             std::to_string(count));
  }
}

std::uint32_t SpirvWords::id(const Instruction& instruction, std::size_t index) const {
  need(instruction, index + 1);
  const std::uint32_t value = instruction.operands[index];
  if (value == 0 || value >= words_[3]) {
    fail(instruction.at + 1 + index,
         std::to_string(value) + " is no id below the bound " + std::to_string(words_[3]));
  }
  return value;
}

std::string SpirvWords::text(const Instruction& instruction, std::size_t index) const {
  std::string found;
  for (; index < instruction.operands.size(); ++index) {
    for (int shift = 0; shift < 32; shift += 8) {
      const char c = static_cast<char>(instruction.operands[index] >> shift & 0xff);
      if (c == '\0') return found;
      found += c;
    }
  }
  fail(instruction.at, "a name has no end");
}

void SpirvWords::fail(std::size_t word, const std::string& problem) const {
  throw Error(ErrorKind::kFormat, "the shader of kernel " + in_quotes(kernel_) +
                                      " is malformed at word " + std::to_string(word) + ": " +
                                      problem);
}

void SpirvWords::refuse(const std::string& problem) const {
  throw Error(ErrorKind::kIncompatible,
              "the shader of kernel " + in_quotes(kernel_) + " " + problem);
}

}  // namespace run_model
