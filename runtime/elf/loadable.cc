#include "runtime/elf/loadable.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <set>
#include <string>

#include "runtime/elf/relocations.h"

namespace run_model {
namespace {

#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif

constexpr std::uint16_t kVersionIndexMask = 0x7fff;
// Far above what code that reaches its data relative to itself can use (2 GiB on every machine).
constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 36;

bool power_of_two(std::uint64_t value) { return std::has_single_bit(value); }

void check_segments(const ElfFile& file) {
  const ByteReader reader = file.reader();
  std::uint64_t end = 0;
  bool any = false;
  for (const ElfSegment& segment : file.segments()) {
    if (segment.memory_bytes > ~segment.address) {
      reader.fail("a segment lies beyond the end of memory");
    }
    if (segment.type == PT_LOAD) {
      if (segment.file_bytes > segment.memory_bytes) {
        reader.fail("a segment is larger in the file than in memory");
      }
      if (segment.alignment > 1 && (!power_of_two(segment.alignment) ||
                                    (segment.address - segment.offset) % segment.alignment != 0)) {
        reader.fail("a segment is not aligned as its header says");
      }
      if (segment.memory_bytes > kMaxSegmentBytes) {
        reader.fail("a segment takes " + std::to_string(segment.memory_bytes) + " bytes of memory");
      }
      if (any && segment.address < end) {
        reader.fail("its segments overlap or are not in order");
      }
      if (segment.file_bytes != 0 && (segment.flags & PF_R) == 0) {
        reader.fail("a segment is not readable");
      }
      end = segment.address + segment.memory_bytes;
      any = true;
    } else if (segment.type == PT_TLS) {
      if (segment.file_bytes > segment.memory_bytes ||
          (segment.alignment > 1 && !power_of_two(segment.alignment)) ||
          !file.file_offset(segment.address, segment.file_bytes)) {
        reader.fail("its thread-local variables are not within the file");
      }
    } else if (segment.type == PT_GNU_RELRO) {
      if (!file.in_image(segment.address, segment.memory_bytes, PF_R | PF_W)) {
        reader.fail("what is to be made read-only after loading is not within a writable segment");
      }
    }
  }
  if (!any) {
    reader.fail("it has nothing to load");
  }
}

// The loader parses GNU property notes on x86 and Arm.
void check_notes(const ElfFile& file) {
  const ByteReader reader = file.reader();
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type != PT_NOTE && segment.type != PT_GNU_PROPERTY) {
      continue;
    }
    const auto offset = file.file_offset(segment.address, segment.memory_bytes);
    if (!offset) {
      reader.fail("its notes are not within the file");
    }
    const std::uint64_t alignment = segment.alignment == 8 ? 8 : 4;
    const auto padded = [alignment](std::uint64_t size) {
      return (size + alignment - 1) / alignment * alignment;
    };
    std::uint64_t at = 0;
    while (segment.memory_bytes - at >= 12) {
      ByteReader note = reader.at(*offset + at);
      const std::uint64_t name_bytes = note.u32();
      const std::uint64_t content_bytes = note.u32();
      const std::uint64_t total = padded(12 + name_bytes) + padded(content_bytes);
      if (total > segment.memory_bytes - at) {
        reader.fail("a note is longer than its segment");
      }
      at += total;
    }
  }
}

// It was parsed from its place in the file; the loader finds it by its address.
void check_place_of_dynamic(const ElfFile& file) {
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type != PT_DYNAMIC) {
      continue;
    }
    if (file.file_offset(segment.address, segment.file_bytes) != segment.offset ||
        !file.in_image(segment.address, segment.memory_bytes, segment.flags)) {
      file.reader().fail("its dynamic section is not where its segments say");
    }
    return;
  }
}

// Where one of a group of entries is missing, the loader finds no value where it expects one, or
// does without what the others describe.
void check_groups(const ElfFile& file) {
  const std::initializer_list<std::uint64_t> groups[] = {
      {DT_RELA, DT_RELASZ, DT_RELAENT},    {DT_REL, DT_RELSZ, DT_RELENT},
      {DT_JMPREL, DT_PLTRELSZ, DT_PLTREL}, {DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
      {DT_FINI_ARRAY, DT_FINI_ARRAYSZ},    {DT_VERNEED, DT_VERNEEDNUM},
      {DT_VERDEF, DT_VERDEFNUM},
  };
  for (const auto& group : groups) {
    const auto present = std::count_if(group.begin(), group.end(), [&file](std::uint64_t tag) {
      return file.dynamic(tag).has_value();
    });
    if (present != 0 && present != static_cast<std::ptrdiff_t>(group.size())) {
      file.reader().fail("its dynamic section lacks an entry");
    }
  }
  if ((file.dynamic(DT_VERNEED) || file.dynamic(DT_VERDEF)) && !file.dynamic(DT_VERSYM)) {
    file.reader().fail("its dynamic section lacks an entry");
  }
}

void check_initialisation(const ElfFile& file) {
  const ByteReader reader = file.reader();
  for (const std::uint64_t tag : {DT_INIT, DT_FINI}) {
    if (const auto address = file.dynamic(tag); address && !file.begins_function(*address)) {
      reader.fail("its initialisation function is not at the beginning of one");
    }
  }
  const std::pair<std::uint64_t, std::uint64_t> arrays[] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ},
                                                            {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
  for (const auto& [tag, size_tag] : arrays) {
    const auto address = file.dynamic(tag);
    if (!address) {
      continue;
    }
    const auto size = file.dynamic(size_tag);
    if (!size || *size % reader.word_bytes() != 0 || !file.in_image(*address, *size, PF_R)) {
      reader.fail("its list of initialisation functions is not within a segment");
    }
  }
}

void check_dynamic(const ElfFile& file) {
  check_place_of_dynamic(file);
  for (const std::uint64_t tag : {DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER}) {
    if (const auto offset = file.dynamic(tag)) {
      file.string_at(*offset);
    }
  }
  check_groups(file);
  check_initialisation(file);
  // RISC-V's loader writes to the first two words there, also where it binds every function at
  // once.
  const std::size_t word = file.reader().word_bytes();
  if (const auto address = file.dynamic(DT_PLTGOT);
      file.target().machine == EM_RISCV && file.dynamic(DT_JMPREL) &&
      (!address || *address % word != 0 || !file.in_image(*address, 2 * word, PF_R | PF_W))) {
    file.reader().fail("its table of function addresses is not within a writable segment");
  }
}

// The loader reads whole entries of its tables, which not every CPU does across a word's boundary.
void check_alignment(const ElfFile& file) {
  const std::size_t word = file.reader().word_bytes();
  const std::pair<std::uint64_t, std::size_t> tables[] = {
      {DT_SYMTAB, word}, {DT_REL, word},      {DT_RELA, word},       {DT_JMPREL, word},
      {kTagRelr, word},  {DT_GNU_HASH, word}, {DT_INIT_ARRAY, word}, {DT_FINI_ARRAY, word},
      {DT_HASH, 4},      {DT_VERNEED, 4},     {DT_VERDEF, 4},        {DT_VERSYM, 2},
  };
  for (const auto& [tag, alignment] : tables) {
    if (file.dynamic(tag).value_or(0) % alignment != 0) {
      file.reader().fail("a table in its dynamic section does not begin at a whole word");
    }
  }
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type == PT_DYNAMIC && segment.address % word != 0) {
      file.reader().fail("its dynamic section does not begin at a whole word");
    }
  }
}

void check_gnu_hash(const ElfFile& file, std::uint64_t address) {
  const ByteReader reader = file.reader();
  // Parsing has already found these within the file.
  const std::uint64_t offset = file.file_offset(address, 16).value_or(0);
  ByteReader header = reader.at(offset);
  const std::uint64_t bucket_count = header.u32();
  const std::uint64_t first_symbol = header.u32();
  const std::uint64_t bloom_words = header.u32();
  const std::uint64_t symbol_count = file.symbols().size() + 1;
  if (bucket_count == 0 || !power_of_two(bloom_words) || first_symbol > symbol_count) {
    reader.fail("its GNU hash table has an impossible header");
  }
  const std::uint64_t buckets = 16 + bloom_words * reader.word_bytes();
  const std::uint64_t chains = buckets + 4 * bucket_count;
  const std::uint64_t chain_count = symbol_count - first_symbol;
  bool any = false;
  if (!file.file_offset(address, chains)) {
    reader.fail("its GNU hash table is not within a segment");
  }
  for (std::uint64_t i = 0; i < bucket_count; ++i) {
    const std::uint64_t symbol = reader.number(offset + buckets + 4 * i, 4);
    if (symbol != 0 && (symbol < first_symbol || symbol >= symbol_count)) {
      reader.fail("its GNU hash table names a symbol that does not exist");
    }
    any = any || symbol != 0;
  }
  // With the last chain entry marked as an end, every search stops within the table.
  if (any && (!file.file_offset(address, chains + 4 * chain_count) ||
              (reader.number(offset + chains + 4 * (chain_count - 1), 4) & 1) == 0)) {
    reader.fail("its GNU hash table has no end");
  }
}

// The older hash table: buckets and chains of symbol numbers, 0 ends a chain. Looked at by the
// loader only where there is no GNU hash table.
void check_old_hash(const ElfFile& file, std::uint64_t address) {
  const ByteReader reader = file.reader();
  const std::size_t entry = file.target().machine == EM_S390 && file.target().bits == 64 ? 8 : 4;
  const std::uint64_t offset = file.file_offset(address, 2 * entry).value_or(0);
  const std::uint64_t bucket_count = reader.number(offset, entry);
  const std::uint64_t chain_count = reader.number(offset + entry, entry);
  const std::uint64_t file_bytes = reader.all().size();
  if (bucket_count == 0 || bucket_count > file_bytes || chain_count > file_bytes ||
      !file.file_offset(address, entry * (2 + bucket_count + chain_count))) {
    reader.fail("its hash table is not within a segment");
  }
  const std::uint64_t chains = offset + entry * (2 + bucket_count);
  std::vector<bool> seen(chain_count, false);
  for (std::uint64_t i = 0; i < bucket_count; ++i) {
    std::uint64_t symbol = reader.number(offset + entry * (2 + i), entry);
    while (symbol != 0) {
      if (symbol >= chain_count || seen[symbol]) {
        reader.fail("its hash table names a symbol that does not exist, or one twice");
      }
      seen[symbol] = true;
      symbol = reader.number(chains + entry * symbol, entry);
    }
  }
}

void check_symbols(const ElfFile& file) {
  for (const ElfSymbol& symbol : file.symbols()) {
    if (!symbol.defined && !symbol.visible) {
      file.reader().fail("a function or variable of other libraries is marked as its own");
    }
    if (!symbol.defined || !symbol.visible) {
      continue;
    }
    const bool function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
    // Bit 0 of an Arm function's address tells Thumb code from Arm code.
    const std::uint64_t address =
        symbol.address & ~std::uint64_t{function && file.target().machine == EM_ARM};
    if ((function && !file.in_code(address)) ||
        (symbol.type == STT_OBJECT && !file.in_image(address, symbol.bytes, PF_R))) {
      file.reader().fail("a function or variable that it defines is not within its segments");
    }
  }
}

// Every version index that a symbol has must be one that is defined or needed: the loader makes a
// table up to the highest of those and then uses the symbols' numbers as they are.
void check_versions(const ElfFile& file) {
  const ByteReader reader = file.reader();
  std::set<std::uint16_t> known = {VER_NDX_LOCAL, VER_NDX_GLOBAL};
  for (const ElfVersionNeed& need : file.version_needs()) {
    known.insert(need.index & kVersionIndexMask);
  }
  const std::uint64_t definitions = file.dynamic(DT_VERDEFNUM).value_or(0);
  const auto address = file.dynamic(DT_VERDEF);
  if (address && definitions != 0) {
    constexpr std::uint64_t kDefinitionBytes = 20;
    std::uint64_t at = *address;
    for (std::uint64_t i = 0; i < definitions; ++i) {
      const auto offset = file.file_offset(at, kDefinitionBytes);
      if (!offset) {
        reader.fail("its list of versions is not within a segment");
      }
      ByteReader definition = reader.at(*offset);
      definition.u16();  // vd_version
      definition.u16();  // vd_flags
      known.insert(definition.u16() & kVersionIndexMask);
      definition.u16();  // vd_cnt
      definition.u32();  // vd_hash
      const std::uint32_t name = definition.u32();
      const std::uint32_t next = definition.u32();
      const auto name_offset = file.file_offset(at + name, 8);
      if (!name_offset) {
        reader.fail("a version's name is not within a segment");
      }
      file.string_at(reader.number(*name_offset, 4));
      if (next == 0) {
        break;
      }
      at += next;
    }
  }
  for (const ElfSymbol& symbol : file.symbols()) {
    if (!known.contains(symbol.version)) {
      reader.fail("a symbol has a version that is not declared");
    }
  }
}

}  // namespace

void check_loadable(const ElfFile& file) {
  check_segments(file);
  check_notes(file);
  check_dynamic(file);
  check_alignment(file);
  if (const auto address = file.dynamic(DT_GNU_HASH)) {
    check_gnu_hash(file, *address);
  } else if (const auto old_address = file.dynamic(DT_HASH)) {
    check_old_hash(file, *old_address);
  }
  check_symbols(file);
  check_versions(file);
  check_relocations(file);
}

}  // namespace run_model
