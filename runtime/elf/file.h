// Reads what has to be known about a compiled library without loading it, for any machine.
// Format: the System V ABI's chapters on object files and dynamic linking, and the GNU extensions
// (symbol versions, GNU hash table) as the Linux Standard Base describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "runtime/elf/target.h"

namespace run_model {

// A part of the file that is mapped into memory, or describes a part that is (program header).
struct ElfSegment {
  std::uint32_t type = 0;   // PT_LOAD, PT_DYNAMIC …
  std::uint32_t flags = 0;  // PF_R | PF_W | PF_X
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t alignment = 0;
};

struct ElfSymbol {
  std::string_view name;  // points into the file
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint8_t type = 0;  // STT_FUNC, STT_OBJECT …
  bool weak = false;
  bool defined = false;
  bool visible = false;  // to other libraries, or sought in them; false for local and hidden ones
  std::uint16_t version =
      0;  // index as in DT_VERSYM, without the "hidden" bit; 0 where unversioned
};

// "needs at least this version of that library": one entry of DT_VERNEED.
struct ElfVersionNeed {
  std::string_view library;  // "libc.so.6"
  std::string_view version;  // "GLIBC_2.34"
  std::uint16_t index = 0;   // what ElfSymbol::version refers to
};

// The views point into the bytes that were parsed.
class ElfFile {
 public:
  // `source` names the file in errors. Throws Error(kFormat) when the bytes are no ELF file (saying
  // what they look like), truncated, damaged, or not a shared library.
  static ElfFile parse(std::span<const std::byte> bytes, std::string source);

  const std::string& source() const { return source_; }
  // Reads from a place in the file: numbers in its byte order, words as wide as its class says. Its
  // errors are Error(kFormat) "<source> is a damaged ELF file: <problem>".
  ByteReader reader(std::uint64_t position = 0) const {
    return ByteReader(bytes_, source_, format_).at(position);
  }
  const ElfTarget& target() const { return target_; }
  std::uint32_t flags() const { return flags_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }

  const std::vector<std::string_view>& needed() const { return needed_; }  // DT_NEEDED
  const std::vector<ElfVersionNeed>& version_needs() const { return version_needs_; }

  // Whether [address, address + length) of the loaded image lies in one segment that has all of
  // `flags` (PF_R, PF_W, PF_X).
  bool in_image(std::uint64_t address, std::uint64_t length, std::uint32_t flags) const;

  // Whether a function may begin at `address`: it lies in an executable segment and, where the file
  // has section headers, in one of the sections that hold instructions.
  bool in_code(std::uint64_t address) const;

  // Whether a function may begin at `address`: it is in_code() and, where the file has kept its
  // full table of symbols (it is not stripped), a function is named there.
  bool begins_function(std::uint64_t address) const;

  // The dynamic symbol table without its null entry.
  std::span<const ElfSymbol> symbols() const {
    return std::span(symbols_).subspan(symbols_.empty() ? 0 : 1);
  }

  // The visible definition of that name, or null.
  const ElfSymbol* find(std::string_view name) const;

  // The value of a dynamic tag (DT_INIT …): of the last entry, as for the loader, should there be
  // two.
  std::optional<std::uint64_t> dynamic(std::uint64_t tag) const;

  // The text at an offset of the table of names. Throws Error(kFormat) when there is no such
  // offset.
  std::string_view string_at(std::uint64_t offset) const;

  // Where the byte at `address` of the loaded image is in the file, if the `length` bytes from
  // there all come from the file.
  std::optional<std::uint64_t> file_offset(std::uint64_t address, std::uint64_t length) const;

  // The initial bytes of a defined symbol: as many as the symbol's size says, or up to the end of
  // its segment where the size is 0. Empty when they are not in the file.
  std::span<const std::byte> bytes_of(const ElfSymbol& symbol) const;

 private:
  ElfFile(std::span<const std::byte> bytes, std::string source, ByteFormat format)
      : source_(std::move(source)), bytes_(bytes), format_(format) {}

  void read_header();
  void read_segments(std::uint64_t offset, std::size_t entry_bytes, std::size_t count);
  void read_sections(std::uint64_t offset, std::size_t entry_bytes, std::size_t count);
  std::size_t symbol_bytes() const;
  std::uint32_t read_symbol(std::uint64_t offset, ElfSymbol& symbol) const;
  void read_full_symbols(std::uint64_t offset, std::uint64_t bytes);
  void read_dynamic();
  void read_strings();
  void read_symbols();
  void read_versions();
  std::size_t symbol_count() const;
  std::size_t gnu_hash_symbol_count(std::uint64_t address) const;
  std::uint64_t offset_of(std::uint64_t tag, std::uint64_t length, const char* what) const;

  std::string source_;
  std::span<const std::byte> bytes_;
  ByteFormat format_;
  ElfTarget target_;
  std::uint32_t flags_ = 0;
  std::vector<ElfSegment> segments_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> dynamic_;
  std::span<const std::byte> strings_;
  std::optional<std::uint64_t>
      section_symbol_count_;  // from the section headers, where there are any
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      code_sections_;                                  // address, end; apart and ascending
  std::unordered_set<std::uint64_t> named_functions_;  // addresses, from the full table of symbols
  FloatAbi attributes_float_abi_ = FloatAbi::kUnspecified;
  std::vector<std::string_view> needed_;
  std::vector<ElfVersionNeed> version_needs_;
  std::vector<ElfSymbol> symbols_;
  std::unordered_map<std::string_view, std::size_t> definitions_;
};

}  // namespace run_model
