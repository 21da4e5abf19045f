// An executable of TVM's Relax virtual machine: functions, constants and instructions.
// Format read from TVM's executable.cc and bytecode.h, 0.21 to 0.27; little-endian, a text is a
// 64-bit length and its bytes.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "runtime/elf/file.h"
#include "runtime/loading/params_file.h"
#include "runtime/relax/library_blob.h"

namespace run_model {

enum class RelaxFunctionKind : std::int32_t {
  kPacked = 0,    // a compiled function of the library, or one of the runtime, by its name
  kBytecode = 1,  // instructions
  kCompiled = 2,  // its instructions were compiled into the library's __vmtir__NAME
};

// Of the tuples that a function takes in all, and of each that it makes: far above what models
// have, and small enough to allocate for and to follow.
inline constexpr std::size_t kMostRelaxItems = std::size_t{1} << 16;
inline constexpr std::size_t kDeepestRelaxTuple = 16;

struct RelaxFunction {
  RelaxFunctionKind kind = RelaxFunctionKind::kPacked;
  std::string name;
  std::size_t start = 0;  // instructions [start, end)
  std::size_t end = 0;
  std::size_t parameters = 0;  // what a caller gives; in the first registers
  std::size_t registers = 0;
  std::vector<std::string> parameter_names;
};

struct RelaxShape {
  std::vector<std::int64_t> dims;
};

// A tensor is a Param without a name, whose data points into the file.
using RelaxConstant =
    std::variant<Param, RelaxShape, DLDataType, std::string, std::int64_t, double>;

enum class RelaxArgumentKind : std::uint8_t {
  kRegister = 0,
  kImmediate = 1,
  kConstant = 2,
  kFunction = 3,
};

struct RelaxArgument {
  RelaxArgumentKind kind = RelaxArgumentKind::kRegister;
  std::int64_t value = 0;
};

// Registers that are none: what a call's result goes to when nobody wants it, and what stands for
// the virtual machine itself as an argument.
inline constexpr std::int64_t kRelaxVoid = std::int64_t{1} << 54;
inline constexpr std::int64_t kRelaxMachine = kRelaxVoid + 1;

enum class RelaxOpcode : std::int64_t { kCall = 1, kReturn = 2, kGoto = 3, kIf = 4 };

struct RelaxInstruction {
  RelaxOpcode opcode = RelaxOpcode::kReturn;
  std::int64_t target = 0;   // the register: of a call's result, a return's value, a condition
  std::size_t function = 0;  // of a call
  std::vector<RelaxArgument> arguments;
  std::int64_t offset = 0;  // of a goto, of an if when it is false: in instructions from this one
};

struct RelaxExecutable {
  std::vector<RelaxFunction> functions;
  std::vector<RelaxConstant> constants;
  std::vector<RelaxInstruction> instructions;
  bool bool_is_a_type = false;             // tensors of bool are kFfiBoolType
  std::shared_ptr<const MappedFile> file;  // which the constants' data points into

  // The function of this name, or null.
  const RelaxFunction* find(std::string_view name) const;
};

// Parses and verifies an executable: afterwards indices and registers are in range, jumps lead
// forward inside their function, a function ends with a return or a jump, sizes fit. `source` names
// the file in errors. Throws Error(kFormat), Error(kIncompatible) for another version of the format
// and for tensors in a GPU's memory.
RelaxExecutable parse_relax_executable(const RelaxBytes& bytes, const std::string& source);

// The executable in a library whose file has these bytes; nothing where there is none. Throws as
// above, and as parse_library_blob() does. The constants point into `file`.
std::optional<RelaxExecutable> relax_executable_of(const ElfFile& elf,
                                                   std::span<const std::byte> file);

}  // namespace run_model
