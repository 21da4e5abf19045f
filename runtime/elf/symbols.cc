// The parts of ElfFile that are about symbols and their versions.
#include <elf.h>

#include <algorithm>
#include <string>

#include "runtime/elf/file.h"

namespace run_model {
namespace {

// A library that TVM made needs a handful of versions of a handful of libraries.
constexpr std::size_t kMaxVersionNeeds = 4096;

// The "hidden" bit of a DT_VERSYM entry.
constexpr std::uint16_t kVersionHidden = 0x8000;

}  // namespace

std::size_t ElfFile::symbol_bytes() const {
  return target_.bits == 64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

// One entry of a table of symbols; gives the place of its name in the table of names.
std::uint32_t ElfFile::read_symbol(std::uint64_t offset, ElfSymbol& symbol) const {
  const bool wide = target_.bits == 64;
  ByteReader entry = reader(offset);
  const std::uint32_t name = entry.u32();
  std::uint8_t info = 0;
  std::uint8_t other = 0;
  std::uint16_t section = 0;
  if (wide) {
    info = entry.u8();
    other = entry.u8();
    section = entry.u16();
  }
  symbol.address = entry.word();
  symbol.bytes = entry.word();
  if (!wide) {
    info = entry.u8();
    other = entry.u8();
    section = entry.u16();
  }
  symbol.type = ELF64_ST_TYPE(info);
  const auto binding = ELF64_ST_BIND(info);
  const auto visibility = ELF64_ST_VISIBILITY(other);
  symbol.weak = binding == STB_WEAK;
  symbol.defined = section != SHN_UNDEF;
  symbol.visible = (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
                   (visibility == STV_DEFAULT || (visibility == STV_PROTECTED && symbol.defined));
  return name;
}

void ElfFile::read_full_symbols(std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t at = 0; bytes - at >= symbol_bytes(); at += symbol_bytes()) {
    ElfSymbol symbol;
    read_symbol(offset + at, symbol);
    if (symbol.defined && (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC)) {
      named_functions_.insert(symbol.address);
    }
  }
}

void ElfFile::read_symbols() {
  if (!dynamic(DT_SYMTAB)) {
    reader().fail("it has no table of symbols");
  }
  const std::size_t entry_bytes = symbol_bytes();
  if (dynamic(DT_SYMENT).value_or(entry_bytes) != entry_bytes) {
    reader().fail("its symbols take " + std::to_string(*dynamic(DT_SYMENT)) +
                  " bytes each, expected " + std::to_string(entry_bytes));
  }
  const std::size_t count = symbol_count();
  if (count > bytes_.size() / entry_bytes) {
    reader().fail("its table of " + std::to_string(count) + " symbols is larger than the file");
  }
  const std::uint64_t offset = offset_of(DT_SYMTAB, count * entry_bytes, "table of symbols");
  symbols_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    symbols_[i].name = string_at(read_symbol(offset + i * entry_bytes, symbols_[i]));
  }
  for (std::size_t i = 1; i < symbols_.size(); ++i) {
    if (symbols_[i].defined && symbols_[i].visible && !symbols_[i].name.empty()) {
      definitions_.emplace(symbols_[i].name, i);
    }
  }
}

// Nothing in the dynamic section says how many symbols there are; the hash tables and the section
// headers each know. Object files without exports may have a GNU hash table that covers none.
std::size_t ElfFile::symbol_count() const {
  std::uint64_t count = section_symbol_count_.value_or(0);
  if (const auto hash = dynamic(DT_HASH)) {
    // nbucket, nchain; there is a chain entry for each symbol. 64-bit s390 has entries of 8 bytes.
    const std::size_t entry = target_.machine == EM_S390 && target_.bits == 64 ? 8 : 4;
    count = std::max(count,
                     reader().number(offset_of(DT_HASH, 2 * entry, "hash table") + entry, entry));
  }
  if (const auto hash = dynamic(DT_GNU_HASH)) {
    count = std::max<std::uint64_t>(count, gnu_hash_symbol_count(*hash));
  }
  return static_cast<std::size_t>(count);
}

std::size_t ElfFile::gnu_hash_symbol_count(std::uint64_t address) const {
  const auto offset = file_offset(address, 16);
  if (!offset) {
    reader().fail("its GNU hash table is not within the file");
  }
  ByteReader header = reader(*offset);
  const std::uint64_t bucket_count = header.u32();
  const std::uint64_t first_symbol = header.u32();
  const std::uint64_t bloom_words = header.u32();
  const std::uint64_t buckets = *offset + 16 + bloom_words * reader().word_bytes();
  const std::uint64_t chains = buckets + 4 * bucket_count;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < bucket_count; ++i) {
    last = std::max(last, reader().number(buckets + 4 * i, 4));
  }
  if (last < first_symbol) {
    return first_symbol;
  }
  // The chain of the highest bucket ends, marked by its lowest bit, with the last symbol.
  while ((reader().number(chains + 4 * (last - first_symbol), 4) & 1) == 0) {
    ++last;
  }
  return static_cast<std::size_t>(last + 1);
}

void ElfFile::read_versions() {
  if (dynamic(DT_VERSYM)) {
    const std::uint64_t offset =
        offset_of(DT_VERSYM, 2 * symbols_.size(), "table of symbol versions");
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      symbols_[i].version =
          static_cast<std::uint16_t>(reader().number(offset + 2 * i, 2) & ~kVersionHidden);
    }
  }
  const std::uint64_t libraries = dynamic(DT_VERNEEDNUM).value_or(0);
  if (!dynamic(DT_VERNEED) || libraries == 0) {
    return;
  }
  std::uint64_t at = offset_of(DT_VERNEED, sizeof(Elf64_Verneed), "list of needed versions");
  for (std::uint64_t i = 0; i < libraries; ++i) {
    ByteReader need = reader(at);
    need.u16();  // vn_version
    const std::size_t versions = need.u16();
    const std::string_view library = string_at(need.u32());
    std::uint64_t entry_at = at + need.u32();
    const std::uint32_t next = need.u32();
    for (std::size_t v = 0; v < versions; ++v) {
      if (version_needs_.size() == kMaxVersionNeeds) {
        reader().fail("it needs more versions of other libraries than make sense");
      }
      ByteReader entry = reader(entry_at);
      entry.u32();  // vna_hash
      entry.u16();  // vna_flags
      const std::uint16_t index = entry.u16();
      const std::string_view version = string_at(entry.u32());
      const std::uint32_t next_entry = entry.u32();
      version_needs_.push_back({library, version, index});
      if (next_entry == 0) {
        break;
      }
      entry_at += next_entry;
    }
    if (next == 0) {
      break;
    }
    at += next;
  }
}

}  // namespace run_model
