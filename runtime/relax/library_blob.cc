#include "runtime/relax/library_blob.h"

#include <cstdint>
#include <string>

#include <run_model/error.h>
#include "base/byte_reader.h"
#include "base/text.h"

namespace run_model {
namespace {

// Far above what any model has, and small enough to allocate for.
constexpr std::uint64_t kMostModules = 1024;
constexpr std::uint64_t kLongestKind = 256;

// The tree in compressed rows: there is one library and one executable however they hang together,
// so it is only checked for being well-formed.
std::size_t read_tree(ByteReader& reader) {
  const std::size_t rows = reader.count(kMostModules + 1, 8, "the import tree's number of rows");
  if (rows == 0) reader.fail("the import tree has no rows");
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint64_t row = reader.u64("a row of the import tree");
    if (row < last) reader.fail("the rows of the import tree are not in order");
    last = row;
  }
  const std::size_t children =
      reader.count(kMostModules * kMostModules, 8, "the import tree's number of children");
  if (last != children) {
    reader.fail("the import tree's rows and children do not fit together");
  }
  for (std::size_t i = 0; i < children; ++i) {
    const std::uint64_t child = reader.u64("a child in the import tree");
    if (child + 1 >= rows) {
      reader.fail("the import tree names module " + std::to_string(child) + " of " +
                  std::to_string(rows - 1));
    }
  }
  return rows - 1;
}

// Constants for functions of external code generators. Without such functions it names none.
void check_constants(std::span<const std::byte> content, const std::string& source,
                     std::size_t base) {
  ByteReader reader(content, source, {}, base);
  if (content.empty() || reader.u64("the number of constants' names") == 0) return;
  throw Error(ErrorKind::kIncompatible,
              source +
                  " has constants for functions of an external code generator, which run_model "
                  "does not support",
              "compile without partitioning for an external library");
}

[[noreturn]] void refuse_relax_module(const std::string& source, const std::string& kind) {
  throw Error(ErrorKind::kIncompatible,
              source + " carries a module of the kind " + in_quotes(kind) +
                  ", which run_model does not know (it knows plain CPU code and executables of the "
                  "Relax virtual machine)",
              "compile for target \"llvm\" without external libraries");
}

}  // namespace

std::optional<RelaxBytes> parse_library_blob(std::span<const std::byte> blob,
                                             const std::string& source, std::size_t base,
                                             bool with_tree_module) {
  ByteReader length_reader(blob, source, {}, base);
  const std::uint64_t length = length_reader.u64("the length of the embedded modules");
  const auto content = length_reader.bytes(length, "the embedded modules");

  ByteReader reader(content, source, {}, base + 8);
  const std::size_t modules = with_tree_module
                                  ? reader.count(kMostModules, 8, "the number of embedded modules")
                                  : read_tree(reader);
  std::optional<RelaxBytes> executable;
  for (std::size_t i = 0; i < modules; ++i) {
    const std::string kind = reader.string(kLongestKind, "an embedded module's kind");
    if (kind == "_lib") continue;  // the library itself
    if (kind == "_import_tree") {
      read_tree(reader);
      continue;
    }
    const std::uint64_t bytes = reader.u64("the size of an embedded module");
    const auto start = static_cast<std::size_t>(reader.offset());
    const auto module = reader.bytes(bytes, "an embedded module");
    if (kind == "relax.VMExecutable" || kind == "relax.Executable") {
      if (executable) reader.fail("there is a second executable, where one was expected");
      executable = RelaxBytes{module, start};
    } else if (kind == "const_loader") {
      check_constants(module, source, start);
    } else {
      refuse_relax_module(source, kind);
    }
  }
  if (!reader.at_end()) {
    reader.fail(std::to_string(reader.remaining()) + " bytes are left over after the last module");
  }
  return executable;
}

}  // namespace run_model
