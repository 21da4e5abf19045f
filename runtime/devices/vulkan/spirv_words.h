// The words of a SPIR-V module as instructions with operands, within their bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace run_model {

class SpirvWords {
 public:
  // The operands follow the word with length and opcode.
  struct Instruction {
    std::uint32_t op = 0;
    std::size_t at = 0;  // of its first word in the module
    std::span<const std::uint32_t> operands;
  };

  static constexpr std::size_t kBegin = 5;  // words of the header

  // `words` and `kernel`, the name in messages, must outlive this. Throws Error(kFormat) for a
  // header that is none of SPIR-V 1.
  SpirvWords(std::span<const std::uint32_t> words, const std::string& kernel);

  const std::string& kernel() const { return kernel_; }
  std::uint32_t major() const { return words_[1] >> 16 & 0xff; }
  std::uint32_t minor() const { return words_[1] >> 8 & 0xff; }
  std::size_t size() const { return words_.size(); }

  // Calls it with each instruction from word `at` on.
  template <typename Function>
  void for_each(std::size_t at, Function function) const {
    while (at < words_.size()) {
      const Instruction instruction = instruction_at(at);
      function(instruction);
      at += 1 + instruction.operands.size();
    }
  }

  // An instruction needs `count` operands at least.
  void need(const Instruction& instruction, std::size_t count) const;
  // The operand `index`, which is an id.
  std::uint32_t id(const Instruction& instruction, std::size_t index) const;
  // The text that begins at an operand: UTF-8, four bytes a word from the lowest on, ended by 0.
  std::string text(const Instruction& instruction, std::size_t index) const;

  // Error(kFormat): "the shader of kernel 'k' is malformed at word 3: …".
  [[noreturn]] void fail(std::size_t word, const std::string& problem) const;
  // Error(kIncompatible): "the shader of kernel 'k' …".
  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  Instruction instruction_at(std::size_t at) const;

  std::span<const std::uint32_t> words_;
  const std::string& kernel_;
};

}  // namespace run_model
