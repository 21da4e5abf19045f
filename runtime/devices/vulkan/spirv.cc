// Numbers are those of the SPIR-V specification 1.6, section 3 (enumerants, instructions).
#include "runtime/devices/vulkan/spirv.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/vulkan/spirv_words.h"

namespace run_model {
namespace {

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

class ShaderReader {
 public:
  using Instruction = SpirvWords::Instruction;

  explicit ShaderReader(const SpirvWords& words) : words_(words) {}

  ShaderFacts read() {
    facts_.major = words_.major();
    facts_.minor = words_.minor();
    words_.for_each(SpirvWords::kBegin, [&](const Instruction& each) { note(each); });
    if (in_function_) words_.fail(words_.size(), "a function has no end");
    if (!has_memory_model_) words_.fail(words_.size(), "there is no memory model");
    if (entry_point_ == 0) {
      throw Error(ErrorKind::kFormat, "the shader of kernel " + in_quotes(words_.kernel()) +
                                          " has no entry point of this name for compute");
    }
    find_threads();
    find_variables();
    find_writes();
    return std::move(facts_);
  }

 private:
  void define(const Instruction& instruction, std::size_t index) {
    if (!definitions_.emplace(words_.id(instruction, index), instruction).second) {
      words_.fail(instruction.at,
                  "id " + std::to_string(instruction.operands[index]) + " is defined twice");
    }
  }

  void note(const Instruction& instruction) {
    follow_blocks(instruction);
    switch (instruction.op) {
      case kOpExtension:
        facts_.extensions.push_back(words_.text(instruction, 0));
        break;
      case kOpCapability:
        words_.need(instruction, 1);
        facts_.capabilities.push_back(instruction.operands[0]);
        break;
      case kOpMemoryModel:
        words_.need(instruction, 2);
        if (instruction.operands[0] != kAddressingLogical) words_.refuse("uses physical addresses");
        has_memory_model_ = true;
        break;
      case kOpEntryPoint:
        words_.need(instruction, 3);
        if (instruction.operands[0] == kModelGlCompute &&
            words_.text(instruction, 2) == words_.kernel()) {
          entry_point_ = words_.id(instruction, 1);
        }
        break;
      case kOpExecutionMode:
      case kOpExecutionModeId:
        words_.need(instruction, 2);
        modes_.push_back(instruction);
        break;
      case kOpTypeInt:
      case kOpTypeFloat:
      case kOpTypeVector:
      case kOpTypeMatrix:
      case kOpTypeArray:
        words_.need(instruction, instruction.op == kOpTypeFloat ? 2 : 3);
        define(instruction, 0);
        break;
      case kOpTypeBool:
      case kOpTypeStruct:
        define(instruction, 0);
        break;
      case kOpTypePointer:
        words_.need(instruction, 3);
        define(instruction, 0);
        break;
      case kOpConstant:
      case kOpSpecConstant:
      case kOpConstantComposite:
      case kOpSpecConstantComposite:
        words_.need(instruction, 3);
        define(instruction, 1);
        break;
      case kOpVariable:
        words_.need(instruction, 3);
        define(instruction, 1);
        if (function_at_ == 0) variables_.push_back(instruction);
        break;
      case kOpDecorate:
        words_.need(instruction, 2);
        decorations_[{words_.id(instruction, 0), instruction.operands[1]}] =
            instruction.operands.size() > 2 ? instruction.operands[2] : 0;
        break;
      case kOpMemberDecorate:
        words_.need(instruction, 3);
        if (instruction.operands[2] == kOffset) {
          words_.need(instruction, 4);
          member_offsets_[{words_.id(instruction, 0), instruction.operands[1]}] =
              instruction.operands[3];
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
        if (in_function_) words_.fail(instruction.at, "a function begins in another");
        if (function_at_ == 0) function_at_ = instruction.at;
        in_function_ = true;
        break;
      case kOpFunctionEnd:
        if (!in_function_ || in_block_)
          words_.fail(instruction.at, "a function ends where there is none");
        in_function_ = false;
        break;
      case kOpLabel:
        if (!in_function_ || in_block_) words_.fail(instruction.at, "a block begins in another");
        in_block_ = true;
        break;
      default:
        if (is_end) {
          if (!in_block_) words_.fail(instruction.at, "a block ends where there is none");
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
      words_.refuse("leaves " + what + " open");
    }
    return found->operands[2];
  }

  // The mode says it, unless a constant is marked as the size, which wins.
  void find_threads() {
    for (const Instruction& mode : modes_) {
      if (mode.operands[0] != entry_point_) continue;
      const std::uint32_t kind = mode.operands[1];
      if (kind != kModeLocalSize && kind != kModeLocalSizeId) continue;
      words_.need(mode, 5);
      for (std::size_t i = 0; i < 3; ++i) {
        facts_.threads[i] = kind == kModeLocalSize
                                ? mode.operands[2 + i]
                                : constant(words_.id(mode, 2 + i), "its group's size");
      }
    }
    for (const auto& [key, value] : decorations_) {
      if (key.second != kBuiltIn || value != kBuiltInWorkgroupSize) continue;
      const Instruction* const size = definition(key.first);
      if (size == nullptr ||
          (size->op != kOpConstantComposite && size->op != kOpSpecConstantComposite)) {
        words_.refuse("leaves its group's size open");
      }
      for (std::size_t i = 0; i < 3; ++i) {
        facts_.threads[i] = constant(words_.id(*size, 2 + i), "its group's size");
      }
    }
    if (std::ranges::find(facts_.threads, 0U) != facts_.threads.end()) {
      words_.refuse("does not say how many threads a group has");
    }
  }

  void find_variables() {
    for (const Instruction& variable : variables_) {
      const std::uint32_t which = variable.operands[1];
      const Instruction* const pointer = definition(variable.operands[0]);
      if (pointer == nullptr || pointer->op != kOpTypePointer) {
        words_.fail(variable.at, "a variable's type is no pointer");
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
          words_.refuse("uses an image or a sampler");
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
    if (block == nullptr || block->op != kOpTypeStruct) words_.refuse("uses an array of buffers");
    const std::optional<std::uint32_t> binding = decoration(which, kBinding);
    if (!binding || decoration(which, kDescriptorSet).value_or(0) != 0) {
      words_.refuse("has a buffer that is not bound in descriptor set 0");
    }
    const bool uniform = storage_class == kUniform && !decoration(type, kBufferBlock);
    const auto [place, is_new] = facts_.bindings.emplace(*binding, ShaderBinding{uniform, false});
    if (!is_new && place->second.uniform != uniform) {
      words_.refuse("has two kinds of buffer at binding " + std::to_string(*binding));
    }
    if (uniform) find_scalars(type);
    binding_of_[which] = *binding;
  }

  void find_scalars(std::uint32_t type) {
    const Instruction* const block = definition(type);
    if (block == nullptr || block->op != kOpTypeStruct)
      words_.refuse("has scalars outside a block");
    if (!facts_.scalars.empty()) words_.refuse("has two blocks of scalars");
    for (std::size_t i = 1; i < block->operands.size(); ++i) {
      const auto offset =
          member_offsets_.find({block->operands[0], static_cast<std::uint32_t>(i - 1)});
      if (offset == member_offsets_.end()) words_.refuse("does not say where its scalars are");
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
    if (found == nullptr || depth > kDeepest)
      words_.refuse("shares memory of a type that is not known");
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
        if (depth > 1) words_.refuse("shares memory of a type that is not known");
        std::uint64_t bytes = 0;
        for (const std::uint32_t member : operands.subspan(1)) {
          bytes = sum(bytes, bytes_of(member, depth + 1));
        }
        return bytes;
      }
      default:
        words_.refuse("shares memory of a type that is not known");
    }
  }

  // Follows pointers into the buffers. An instruction that is not known to leave the memory behind
  // a pointer alone is taken to write there.
  void find_writes() {
    if (function_at_ == 0) words_.fail(words_.size(), "there is no function");
    words_.for_each(function_at_,
                    [&](const Instruction& instruction) { find_writes(instruction); });
  }

  void find_writes(const Instruction& instruction) {
    switch (instruction.op) {
      case kOpAccessChain:
      case kOpInBoundsAccessChain:
      case kOpPtrAccessChain:
      case kOpInBoundsPtrAccessChain:
      case kOpCopyObject: {
        words_.need(instruction, 3);
        const auto base = binding_of_.find(instruction.operands[2]);
        if (base != binding_of_.end()) {
          binding_of_.insert_or_assign(words_.id(instruction, 1), std::uint32_t{base->second});
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
        words_.need(instruction, 2);
        note_write(instruction.operands[0]);
        break;
      default:
        for (const std::uint32_t operand : instruction.operands) note_write(operand);
    }
  }

  void note_write(std::uint32_t pointer) {
    const auto found = binding_of_.find(pointer);
    if (found != binding_of_.end()) facts_.bindings[found->second].written = true;
  }

  const SpirvWords& words_;
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
  return ShaderReader(SpirvWords(words, kernel)).read();
}

}  // namespace run_model
