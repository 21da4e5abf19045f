#include "runtime/relax/executable.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include <run_model/error.h>
#include "base/byte_reader.h"
#include "base/text.h"
#include "runtime/relax/ffi_abi.h"

namespace run_model {
namespace {

// Releases up to 0.22, and those from 0.23 on, which say where each constant is to lie.
constexpr std::uint64_t kExecutableMagic = 0xD225DE2F4214151D;
constexpr std::uint64_t kExecutableMagicWithScopes = 0xD225DE2F4214151E;
constexpr std::string_view kExecutableVersion = "0.14";

// Far above any real model; they bound what a damaged count can make us allocate.
constexpr std::uint64_t kMostFunctions = 1 << 20;
constexpr std::uint64_t kMostConstants = 1 << 22;
constexpr std::uint64_t kMostWords = 1 << 26;
constexpr std::uint64_t kMostRegisters = 1 << 24;
constexpr std::uint64_t kLongestText = 1 << 20;
constexpr std::uint64_t kMostShapeDimensions = 1 << 10;

// Constants are told apart by the type indices of tvm-ffi.
RelaxConstant read_constant(ByteReader& reader, std::size_t number, bool& bool_is_a_type) {
  const std::int32_t type = reader.i32("a constant's type");
  switch (type) {
    case kFfiTensor: {
      Param tensor = read_tensor(reader, "constant " + std::to_string(number), &bool_is_a_type);
      return tensor;
    }
    case kFfiShape: {
      const std::size_t ndim = reader.count(kMostShapeDimensions, 8, "a shape's dimensions");
      RelaxShape shape;
      for (std::size_t i = 0; i < ndim; ++i) shape.dims.push_back(reader.i64("a dimension"));
      return shape;
    }
    case kFfiDataType: {
      DLDataType dtype{};
      dtype.code = reader.u8("an element type's code");
      dtype.bits = reader.u8("an element type's width");
      dtype.lanes = reader.u16("an element type's lanes");
      if (same_dtype(dtype, kFfiBoolType)) bool_is_a_type = true;
      return dtype;
    }
    case kFfiText:
      return reader.string(kLongestText, "a constant text");
    case kFfiInt:
      return reader.i64("a constant number");
    case kFfiFloat: {
      const std::uint64_t bits = reader.u64("a constant number");
      return std::bit_cast<double>(bits);
    }
    default:
      reader.fail("constant " + std::to_string(number) + " is of type " + std::to_string(type) +
                  ", which none has");
  }
}

class ExecutableReader {
 public:
  ExecutableReader(const RelaxBytes& bytes, const std::string& source)
      : reader_(bytes.bytes, source, {}, bytes.base) {}

  RelaxExecutable read() {
    const bool with_scopes = read_head();
    read_functions();
    if (with_scopes) read_scopes();
    const std::size_t constants = reader_.count(kMostConstants, 4, "the number of constants");
    for (std::size_t i = 0; i < constants; ++i) {
      executable_.constants.push_back(read_constant(reader_, i, executable_.bool_is_a_type));
    }
    if (!scoped_constants_.empty() && scoped_constants_.back() >= constants) {
      reader_.fail("there is a memory for constant " + std::to_string(scoped_constants_.back()) +
                   " of " + std::to_string(constants));
    }
    read_instructions();
    if (!reader_.at_end()) {
      reader_.fail(std::to_string(reader_.remaining()) +
                   " bytes are left over after the instructions");
    }
    for (const RelaxFunction& function : executable_.functions) check_function(function);
    return std::move(executable_);
  }

 private:
  bool read_head() {
    const std::uint64_t magic = reader_.u64("the executable's magic number");
    if (magic != kExecutableMagic && magic != kExecutableMagicWithScopes) {
      reader_.fail("there is no Relax executable where one should be");
    }
    const std::string version = reader_.string(kLongestText, "the executable's version");
    if (version != kExecutableVersion) {
      throw Error(ErrorKind::kIncompatible,
                  std::string(reader_.source()) + " holds a Relax executable of version " +
                      in_quotes(version) + ", expected " + std::string(kExecutableVersion),
                  "compile the model with TVM 0.21 to 0.27");
    }
    return magic == kExecutableMagicWithScopes;
  }

  std::size_t bounded(std::uint64_t limit, const char* what) {
    const std::int64_t value = reader_.i64(what);
    if (value < 0 || static_cast<std::uint64_t>(value) > limit) {
      reader_.fail(std::string(what) + " is " + std::to_string(value) + ", expected up to " +
                   std::to_string(limit));
    }
    return static_cast<std::size_t>(value);
  }

  void read_functions() {
    constexpr std::size_t kLeastBytes = 4 + 8 + 4 * 8 + 8;
    const std::size_t count = reader_.count(kMostFunctions, kLeastBytes, "the number of functions");
    executable_.functions.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      RelaxFunction function;
      const std::int32_t kind = reader_.i32("a function's kind");
      if (kind < 0 || kind > 2) {
        reader_.fail("function " + std::to_string(i) + " is of kind " + std::to_string(kind) +
                     ", expected 0, 1 or 2");
      }
      function.kind = static_cast<RelaxFunctionKind>(kind);
      function.name = reader_.string(kLongestText, "a function's name");
      function.start = bounded(kMostWords, "a function's first instruction");
      function.end = bounded(kMostWords, "a function's last instruction");
      // Functions of the library have no number of parameters: -2, or whatever was there.
      if (function.kind == RelaxFunctionKind::kPacked) {
        reader_.i64("a function's number of parameters");
      } else {
        function.parameters = bounded(kMostRegisters, "a function's number of parameters");
      }
      function.registers = bounded(kMostRegisters, "a function's number of registers");
      const std::size_t names =
          reader_.count(kMostRegisters, 8, "the number of a function's parameter names");
      for (std::size_t k = 0; k < names; ++k) {
        function.parameter_names.push_back(reader_.string(kLongestText, "a parameter's name"));
      }
      executable_.functions.push_back(std::move(function));
    }
  }

  // Memory scopes are for the textures of GPUs.
  void read_scopes() {
    const std::size_t count =
        reader_.count(kMostConstants, 16, "the number of constants with a memory of their own");
    for (std::size_t i = 0; i < count; ++i) {
      scoped_constants_.push_back(bounded(kMostConstants, "a constant's number"));
      const std::string scope = reader_.string(kLongestText, "a memory's name");
      if (scope.empty() || scope == "global") continue;
      throw Error(ErrorKind::kIncompatible,
                  std::string(reader_.source()) + " places a constant in memory of scope " +
                      in_quotes(scope) + ", but this runtime computes on the CPU only",
                  "compile for target \"llvm\"");
    }
    std::sort(scoped_constants_.begin(), scoped_constants_.end());
  }

  std::vector<std::int64_t> read_words(const char* what) {
    const std::size_t count = reader_.count(kMostWords, 8, what);
    std::vector<std::int64_t> words;
    words.reserve(count);
    for (std::size_t i = 0; i < count; ++i) words.push_back(reader_.i64());
    return words;
  }

  void read_instructions() {
    const std::vector<std::int64_t> offsets = read_words("the number of instructions");
    const std::vector<std::int64_t> words = read_words("the number of the instructions' words");
    executable_.instructions.reserve(offsets.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < 0 || static_cast<std::uint64_t>(offsets[i]) != next) {
        fail_at(i, "does not begin where the one before it ends");
      }
      executable_.instructions.push_back(read_instruction(i, words, next));
    }
    if (next != words.size()) reader_.fail("words are left over after the last instruction");
  }

  RelaxInstruction read_instruction(std::size_t number, const std::vector<std::int64_t>& words,
                                    std::size_t& next) const {
    const auto take = [&] {
      if (next >= words.size()) fail_at(number, "is cut short");
      return words[next++];
    };
    RelaxInstruction instruction;
    const std::int64_t opcode = take();
    if (opcode < 1 || opcode > 4) {
      fail_at(number, "has opcode " + std::to_string(opcode) + ", expected 1 to 4");
    }
    instruction.opcode = static_cast<RelaxOpcode>(opcode);
    switch (instruction.opcode) {
      case RelaxOpcode::kCall: {
        instruction.target = take();
        const std::int64_t function = take();
        if (function < 0 || static_cast<std::uint64_t>(function) >= executable_.functions.size()) {
          fail_at(number, "calls function " + std::to_string(function) + " of " +
                              std::to_string(executable_.functions.size()));
        }
        instruction.function = static_cast<std::size_t>(function);
        const std::int64_t count = take();
        if (count < 0 || static_cast<std::uint64_t>(count) > words.size() - next) {
          fail_at(number, "has " + std::to_string(count) + " arguments");
        }
        for (std::int64_t k = 0; k < count; ++k) {
          instruction.arguments.push_back(read_argument(number, take()));
        }
        break;
      }
      case RelaxOpcode::kReturn:
        instruction.target = take();
        break;
      case RelaxOpcode::kGoto:
        instruction.offset = take();
        break;
      case RelaxOpcode::kIf:
        instruction.target = take();
        instruction.offset = take();
        break;
    }
    return instruction;
  }

  // The kind in the top byte, and the value in the others, with its sign.
  RelaxArgument read_argument(std::size_t number, std::int64_t word) const {
    const auto bits = static_cast<std::uint64_t>(word);
    RelaxArgument argument;
    const std::uint64_t kind = bits >> 56;
    if (kind > 3) fail_at(number, "has an argument of kind " + std::to_string(kind));
    argument.kind = static_cast<RelaxArgumentKind>(kind);
    argument.value = static_cast<std::int64_t>(bits << 8) >> 8;
    const auto check = [&](std::size_t count, const char* what) {
      if (argument.value >= 0 && static_cast<std::uint64_t>(argument.value) < count) return;
      fail_at(number, "names " + std::string(what) + " " + std::to_string(argument.value) + " of " +
                          std::to_string(count));
    };
    if (argument.kind == RelaxArgumentKind::kConstant) {
      check(executable_.constants.size(), "constant");
    } else if (argument.kind == RelaxArgumentKind::kFunction) {
      check(executable_.functions.size(), "function");
    }
    return argument;
  }

  void check_function(const RelaxFunction& function) const {
    if (function.parameters > function.registers && function.kind == RelaxFunctionKind::kBytecode) {
      reader_.fail("function " + in_quotes(function.name) + " has " +
                   std::to_string(function.parameters) + " parameters, but " +
                   std::to_string(function.registers) + " registers");
    }
    if (function.kind != RelaxFunctionKind::kBytecode) return;
    if (function.start >= function.end || function.end > executable_.instructions.size()) {
      reader_.fail("function " + in_quotes(function.name) + " has the instructions " +
                   std::to_string(function.start) + " to " + std::to_string(function.end) + " of " +
                   std::to_string(executable_.instructions.size()));
    }
    for (std::size_t i = function.start; i < function.end; ++i) check_instruction(function, i);
  }

  void check_instruction(const RelaxFunction& function, std::size_t number) const {
    const RelaxInstruction& instruction = executable_.instructions[number];
    const bool last = number + 1 == function.end;
    switch (instruction.opcode) {
      case RelaxOpcode::kCall:
        if (instruction.target != kRelaxVoid) check_register(function, number, instruction.target);
        for (const RelaxArgument& argument : instruction.arguments) {
          if (argument.kind != RelaxArgumentKind::kRegister || argument.value == kRelaxVoid ||
              argument.value == kRelaxMachine) {
            continue;
          }
          check_register(function, number, argument.value);
        }
        break;
      case RelaxOpcode::kReturn:
        if (instruction.target != kRelaxVoid) check_register(function, number, instruction.target);
        return;
      case RelaxOpcode::kGoto:
        check_jump(function, number, instruction.offset);
        return;
      case RelaxOpcode::kIf:
        check_register(function, number, instruction.target);
        check_jump(function, number, instruction.offset);
        break;
    }
    if (last) fail_at(number, "is the last of its function, which does not return");
  }

  void check_register(const RelaxFunction& function, std::size_t number, std::int64_t value) const {
    if (value >= 0 && static_cast<std::uint64_t>(value) < function.registers) return;
    fail_at(number, "names register " + std::to_string(value) + " of " +
                        std::to_string(function.registers));
  }

  // TVM jumps forward only, over the other branch of an if; so every function comes to its end.
  void check_jump(const RelaxFunction& function, std::size_t number, std::int64_t offset) const {
    if (offset > 0 && static_cast<std::uint64_t>(offset) < function.end - number) return;
    fail_at(number, "jumps by " + std::to_string(offset) +
                        ", which leads backwards or out of its function");
  }

  [[noreturn]] void fail_at(std::size_t instruction, const std::string& problem) const {
    reader_.fail("instruction " + std::to_string(instruction) + " " + problem);
  }

  ByteReader reader_;
  RelaxExecutable executable_;
  std::vector<std::size_t> scoped_constants_;
};

}  // namespace

const RelaxFunction* RelaxExecutable::find(std::string_view name) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const RelaxFunction& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

RelaxExecutable parse_relax_executable(const RelaxBytes& bytes, const std::string& source) {
  return ExecutableReader(bytes, source).read();
}

std::optional<RelaxExecutable> relax_executable_of(const ElfFile& elf,
                                                   std::span<const std::byte> file) {
  const ElfSymbol* symbol = elf.find(kRelaxBlob);
  const bool of_021 = symbol == nullptr;
  if (of_021) symbol = elf.find(kRelaxBlob021);
  if (symbol == nullptr) return std::nullopt;
  const auto blob = elf.bytes_of(*symbol);
  const auto base = blob.empty() ? 0 : static_cast<std::size_t>(blob.data() - file.data());
  const auto bytes = parse_library_blob(blob, elf.source(), base, of_021);
  if (!bytes) return std::nullopt;
  return parse_relax_executable(*bytes, elf.source());
}

}  // namespace run_model
