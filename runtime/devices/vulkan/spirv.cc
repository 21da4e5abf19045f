// Numbers are those of the SPIR-V specification 1.6, sections 2.3 (layout of a module) and 3
// (enumerants, instructions).
#include "runtime/devices/vulkan/spirv.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::uint32_t kSwappedMagic = 0x03022307;
constexpr std::size_t kHeaderWords = 5;
constexpr std::uint32_t kMaxIds = 0x3fffff;  // 2.17, universal limits

enum Op : std::uint32_t {
  kOpExtension = 10,
  kOpMemoryModel = 14,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpTypeVector = 23,
  kOpTypeMatrix = 24,
  kOpTypeArray = 28,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpConstant = 43,
  kOpConstantComposite = 44,
  kOpSpecConstant = 50,
  kOpSpecConstantComposite = 51,
  kOpFunction = 54,
  kOpFunctionEnd = 56,
  kOpVariable = 59,
  kOpLoad = 61,
  kOpStore = 62,
  kOpCopyMemory = 63,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpPtrAccessChain = 67,
  kOpArrayLength = 68,
  kOpInBoundsPtrAccessChain = 70,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpVectorShuffle = 79,
  kOpCompositeExtract = 81,
  kOpCompositeInsert = 82,
  kOpCopyObject = 83,
  kOpAtomicLoad = 227,
  kOpLabel = 248,
  kOpBranch = 249,
  kOpSwitch = 251,
  kOpUnreachable = 255,
  kOpExecutionModeId = 331,
};

enum StorageClass : std::uint32_t {
  kUniformConstant = 0,
  kUniform = 2,
  kWorkgroup = 4,
  kPushConstant = 9,
  kStorageBuffer = 12,
};

enum Decoration : std::uint32_t {
  kBufferBlock = 3,
  kBuiltIn = 11,
  kBinding = 33,
  kDescriptorSet = 34,
  kOffset = 35,
};

constexpr std::uint32_t kModelGlCompute = 5;
constexpr std::uint32_t kModeLocalSize = 17;
constexpr std::uint32_t kModeLocalSizeId = 38;
constexpr std::uint32_t kBuiltInWorkgroupSize = 25;
constexpr std::uint32_t kAddressingLogical = 0;
constexpr std::uint64_t kEndlessBytes = std::numeric_limits<std::uint64_t>::max();

// The operands follow the word with length and opcode.
struct Instruction {
  std::uint32_t op = 0;
  std::size_t at = 0;  // of its first word in the module
  std::span<const std::uint32_t> operands;
};

class ShaderReader {
 public:
  ShaderReader(std::span<const std::uint32_t> words, const std::string& kernel)
      : words_(words), kernel_(kernel) {}

  ShaderFacts read() {
    read_header();
    for (std::size_t at = kHeaderWords; at < words_.size();) {
      const Instruction instruction = instruction_at(at);
      note(instruction);
      at += 1 + instruction.operands.size();
    }
    if (in_function_) fail(words_.size(), "a function has no end");
    if (!has_memory_model_) fail(words_.size(), "there is no memory model");
    if (entry_point_ == 0) {
      throw Error(ErrorKind::kFormat, "the shader of kernel " + in_quotes(kernel_) +
                                          " has no entry point of this name for compute");
    }
    find_threads();
    find_variables();
    find_writes();
    return std::move(facts_);
  }

 private:
  [[noreturn]] void fail(std::size_t word, const std::string& problem) const {
    throw Error(ErrorKind::kFormat, "the shader of kernel " + in_quotes(kernel_) +
                                        " is malformed at word " + std::to_string(word) + ": " +
                                        problem);
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::kIncompatible,
                "the shader of kernel " + in_quotes(kernel_) + " " + problem);
  }

  void read_header() {
    if (words_.size() < kHeaderWords) {
      fail(0, "it has " + std::to_string(words_.size()) + " words, and SPIR-V's header takes 5");
    }
    if (words_[0] == kSwappedMagic) fail(0, "its bytes are in big-endian order");
    if (words_[0] != kMagic) {
      fail(0, "it begins with 0x" + hex(words_[0]).substr(8) + " where SPIR-V has 0x07230203");
    }
    facts_.major = words_[1] >> 16 & 0xff;
    facts_.minor = words_[1] >> 8 & 0xff;
    if ((words_[1] & 0xff0000ff) != 0 || facts_.major != 1) {
      fail(1, "0x" + hex(words_[1]).substr(8) + " is no version of SPIR-V 1");
    }
    if (words_[3] == 0 || words_[3] > kMaxIds) {
      fail(3, std::to_string(words_[3]) + " is no bound of ids");
    }
    if (words_[4] != 0) fail(4, "the reserved word is not 0");
  }

  Instruction instruction_at(std::size_t at) const {
    const std::size_t length = words_[at] >> 16;
    if (length == 0) fail(at, "an instruction is 0 words long");
    if (length > words_.size() - at) {
      fail(at, "an instruction takes " + std::to_string(length) + " words, but only " +
                   std::to_string(words_.size() - at) + " are left");
    }
    return {words_[at] & 0xffff, at, words_.subspan(at + 1, length - 1)};
  }

  // An instruction needs `count` operands at least.
  void need(const Instruction& instruction, std::size_t count) const {
    if (instruction.operands.size() < count) {
      fail(instruction.at, "instruction " + std::to_string(instruction.op) + " has " +
                               std::to_string(instruction.operands.size()) + " operands of " +
                               std::to_string(count));
    }
  }

  std::uint32_t id(const Instruction& instruction, std::size_t index) const {
    need(instruction, index + 1);
    const std::uint32_t value = instruction.operands[index];
    if (value == 0 || value >= words_[3]) {
      fail(instruction.at + 1 + index,
           std::to_string(value) + " is no id below the bound " + std::to_string(words_[3]));
    }
    return value;
  }

  // The text that begins at an operand: UTF-8, four bytes a word from the lowest on, ended by 0.
  std::string text(const Instruction& instruction, std::size_t index) const {
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

  void define(const Instruction& instruction, std::size_t index) {
    if (!definitions_.emplace(id(instruction, index), instruction).second) {
      fail(instruction.at,
           "id " + std::to_string(instruction.operands[index]) + " is defined twice");
    }
  }

  void note(const Instruction& instruction) {
    follow_blocks(instruction);
    switch (instruction.op) {
      case kOpExtension:
        facts_.extensions.push_back(text(instruction, 0));
        break;
      case kOpCapability:
        need(instruction, 1);
        facts_.capabilities.push_back(instruction.operands[0]);
        break;
      case kOpMemoryModel:
        need(instruction, 2);
        if (instruction.operands[0] != kAddressingLogical) refuse("uses physical addresses");
        has_memory_model_ = true;
        break;
      case kOpEntryPoint:
        need(instruction, 3);
        if (instruction.operands[0] == kModelGlCompute && text(instruction, 2) == kernel_) {
          entry_point_ = id(instruction, 1);
        }
        break;
      case kOpExecutionMode:
      case kOpExecutionModeId:
        need(instruction, 2);
        modes_.push_back(instruction);
        break;
      case kOpTypeInt:
      case kOpTypeFloat:
      case kOpTypeVector:
      case kOpTypeMatrix:
      case kOpTypeArray:
        need(instruction, instruction.op == kOpTypeFloat ? 2 : 3);
        define(instruction, 0);
        break;
      case kOpTypeBool:
      case kOpTypeStruct:
        define(instruction, 0);
        break;
      case kOpTypePointer:
        need(instruction, 3);
        define(instruction, 0);
        break;
      case kOpConstant:
      case kOpSpecConstant:
      case kOpConstantComposite:
      case kOpSpecConstantComposite:
        need(instruction, 3);
        define(instruction, 1);
        break;
      case kOpVariable:
        need(instruction, 3);
        define(instruction, 1);
        if (function_at_ == 0) variables_.push_back(instruction);
        break;
      case kOpDecorate:
        need(instruction, 2);
        decorations_[{id(instruction, 0), instruction.operands[1]}] =
            instruction.operands.size() > 2 ? instruction.operands[2] : 0;
        break;
      case kOpMemberDecorate:
        need(instruction, 3);
        if (instruction.operands[2] == kOffset) {
          need(instruction, 4);
          member_offsets_[{id(instruction, 0), instruction.operands[1]}] = instruction.operands[3];
        }
        break;
      default:
        break;
    }
  }

  // Functions are made of blocks, from a label to a jump; drivers do not survive open ends.
  void follow_blocks(const Instruction& instruction) {
    const bool is_end = instruction.op >= kOpBranch && instruction.op <= kOpUnreachable;
    switch (instruction.op) {
      case kOpFunction:
        if (in_function_) fail(instruction.at, "a function begins in another");
        if (function_at_ == 0) function_at_ = instruction.at;
        in_function_ = true;
        break;
      case kOpFunctionEnd:
        if (!in_function_ || in_block_) fail(instruction.at, "a function ends where there is none");
        in_function_ = false;
        break;
      case kOpLabel:
        if (!in_function_ || in_block_) fail(instruction.at, "a block begins in another");
        in_block_ = true;
        break;
      default:
        if (is_end) {
          if (!in_block_) fail(instruction.at, "a block ends where there is none");
          in_block_ = false;
        }
    }
  }

  const Instruction* definition(std::uint32_t of) const {
    const auto found = definitions_.find(of);
    return found == definitions_.end() ? nullptr : &found->second;
  }

  std::optional<std::uint32_t> decoration(std::uint32_t of, std::uint32_t which) const {
    const auto found = decorations_.find({of, which});
    if (found == decorations_.end()) return std::nullopt;
    return found->second;
  }

  std::uint32_t constant(std::uint32_t of, const std::string& what) const {
    const Instruction* const found = definition(of);
    if (found == nullptr || (found->op != kOpConstant && found->op != kOpSpecConstant)) {
      refuse("leaves " + what + " open");
    }
    return found->operands[2];
  }

  // The mode says it, unless a constant is marked as the size, which wins.
  void find_threads() {
    for (const Instruction& mode : modes_) {
      if (mode.operands[0] != entry_point_) continue;
      const std::uint32_t kind = mode.operands[1];
      if (kind != kModeLocalSize && kind != kModeLocalSizeId) continue;
      need(mode, 5);
      for (std::size_t i = 0; i < 3; ++i) {
        facts_.threads[i] = kind == kModeLocalSize ? mode.operands[2 + i]
                                                   : constant(id(mode, 2 + i), "its group's size");
      }
    }
    for (const auto& [key, value] : decorations_) {
      if (key.second != kBuiltIn || value != kBuiltInWorkgroupSize) continue;
      const Instruction* const size = definition(key.first);
      if (size == nullptr ||
          (size->op != kOpConstantComposite && size->op != kOpSpecConstantComposite)) {
        refuse("leaves its group's size open");
      }
      for (std::size_t i = 0; i < 3; ++i) {
        facts_.threads[i] = constant(id(*size, 2 + i), "its group's size");
      }
    }
    if (std::ranges::find(facts_.threads, 0U) != facts_.threads.end()) {
      refuse("does not say how many threads a group has");
    }
  }

  void find_variables() {
    for (const Instruction& variable : variables_) {
      const std::uint32_t which = variable.operands[1];
      const Instruction* const pointer = definition(variable.operands[0]);
      if (pointer == nullptr || pointer->op != kOpTypePointer) {
        fail(variable.at, "a variable's type is no pointer");
      }
      const std::uint32_t type = pointer->operands[2];
      switch (variable.operands[2]) {
        case kWorkgroup:
          facts_.shared_bytes = sum(facts_.shared_bytes, bytes_of(type, 0));
          break;
        case kPushConstant:
          facts_.has_push_constants = true;
          find_scalars(type);
          break;
        case kUniformConstant:
          refuse("uses an image or a sampler");
        case kUniform:
        case kStorageBuffer:
          note_buffer(which, type, variable.operands[2]);
          break;
        default:
          break;
      }
    }
  }

  void note_buffer(std::uint32_t which, std::uint32_t type, std::uint32_t storage_class) {
    const Instruction* const block = definition(type);
    if (block == nullptr || block->op != kOpTypeStruct) refuse("uses an array of buffers");
    const std::optional<std::uint32_t> binding = decoration(which, kBinding);
    if (!binding || decoration(which, kDescriptorSet).value_or(0) != 0) {
      refuse("has a buffer that is not bound in descriptor set 0");
    }
    const bool uniform = storage_class == kUniform && !decoration(type, kBufferBlock);
    const auto [place, is_new] = facts_.bindings.emplace(*binding, ShaderBinding{uniform, false});
    if (!is_new && place->second.uniform != uniform) {
      refuse("has two kinds of buffer at binding " + std::to_string(*binding));
    }
    if (uniform) find_scalars(type);
    binding_of_[which] = *binding;
  }

  void find_scalars(std::uint32_t type) {
    const Instruction* const block = definition(type);
    if (block == nullptr || block->op != kOpTypeStruct) refuse("has scalars outside a block");
    if (!facts_.scalars.empty()) refuse("has two blocks of scalars");
    for (std::size_t i = 1; i < block->operands.size(); ++i) {
      const auto offset =
          member_offsets_.find({block->operands[0], static_cast<std::uint32_t>(i - 1)});
      if (offset == member_offsets_.end()) refuse("does not say where its scalars are");
      const Instruction* const number = definition(block->operands[i]);
      const bool is_number =
          number != nullptr && (number->op == kOpTypeInt || number->op == kOpTypeFloat);
      facts_.scalars.push_back({offset->second, is_number ? number->operands[1] / 8 : 0});
    }
  }

  static std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > kEndlessBytes - b ? kEndlessBytes : a + b;
  }
  static std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > kEndlessBytes / b ? kEndlessBytes : a * b;
  }

  std::uint64_t bytes_of(std::uint32_t type, int depth) const {
    // Types are made of earlier ones, but nobody has checked that.
    constexpr int kDeepest = 16;
    const Instruction* const found = definition(type);
    if (found == nullptr || depth > kDeepest) refuse("shares memory of a type that is not known");
    const std::span<const std::uint32_t> operands = found->operands;
    switch (found->op) {
      case kOpTypeBool:
        return 4;
      case kOpTypeInt:
      case kOpTypeFloat:
        return operands[1] / 8;
      case kOpTypeVector:
      case kOpTypeMatrix:
        return product(bytes_of(operands[1], depth + 1), operands[2]);
      case kOpTypeArray:
        return product(bytes_of(operands[1], depth + 1), constant(operands[2], "a size"));
      case kOpTypeStruct: {
        if (depth > 1) refuse("shares memory of a type that is not known");
        std::uint64_t bytes = 0;
        for (const std::uint32_t member : operands.subspan(1)) {
          bytes = sum(bytes, bytes_of(member, depth + 1));
        }
        return bytes;
      }
      default:
        refuse("shares memory of a type that is not known");
    }
  }

  // Follows pointers into the buffers. An instruction that is not known to leave the memory behind
  // a pointer alone is taken to write there.
  void find_writes() {
    if (function_at_ == 0) fail(words_.size(), "there is no function");
    for (std::size_t at = function_at_; at < words_.size();) {
      const Instruction instruction = instruction_at(at);
      at += 1 + instruction.operands.size();
      switch (instruction.op) {
        case kOpAccessChain:
        case kOpInBoundsAccessChain:
        case kOpPtrAccessChain:
        case kOpInBoundsPtrAccessChain:
        case kOpCopyObject: {
          need(instruction, 3);
          const auto base = binding_of_.find(instruction.operands[2]);
          if (base != binding_of_.end()) {
            binding_of_.insert_or_assign(id(instruction, 1), std::uint32_t{base->second});
          }
          break;
        }
        case kOpLoad:
        case kOpArrayLength:
        case kOpAtomicLoad:
        // These have numbers that look like ids, and no pointers.
        case kOpVectorShuffle:
        case kOpCompositeExtract:
        case kOpCompositeInsert:
        case kOpSwitch:
          break;
        case kOpStore:
        case kOpCopyMemory:
          need(instruction, 2);
          note_write(instruction.operands[0]);
          break;
        default:
          for (const std::uint32_t operand : instruction.operands) note_write(operand);
      }
    }
  }

  void note_write(std::uint32_t pointer) {
    const auto found = binding_of_.find(pointer);
    if (found != binding_of_.end()) facts_.bindings[found->second].written = true;
  }

  std::span<const std::uint32_t> words_;
  const std::string& kernel_;
  ShaderFacts facts_;
  bool has_memory_model_ = false;
  std::uint32_t entry_point_ = 0;
  std::size_t function_at_ = 0;  // the first
  bool in_function_ = false;
  bool in_block_ = false;
  std::vector<Instruction> modes_;
  std::vector<Instruction> variables_;
  std::unordered_map<std::uint32_t, Instruction> definitions_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> decorations_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> member_offsets_;
  // Of variables and of pointers made of them.
  std::unordered_map<std::uint32_t, std::uint32_t> binding_of_;
};

}  // namespace

ShaderFacts read_shader(std::span<const std::uint32_t> words, const std::string& kernel) {
  return ShaderReader(words, kernel).read();
}

}  // namespace run_model
