// Writes small shared libraries for any machine, class and byte order, to test reading them where
// there is no compiler for that machine. They have no code: symbols point at zero bytes.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace run_model::testing_elf {

struct BuiltSymbol {
  std::string name;
  unsigned type = STT_FUNC;
  bool defined = true;
  bool weak = false;
};

struct BuiltRelocation {
  std::uint64_t place = 0;  // counted from ElfBuilder::code_address()
  std::uint32_t kind = 0;
  std::uint32_t symbol = 0;
  std::uint64_t addend = 0;
};

class ElfBuilder {
 public:
  int bits = 64;
  bool little_endian = true;
  std::uint16_t machine = EM_X86_64;
  std::uint16_t type = ET_DYN;
  std::uint32_t flags = 0;
  std::vector<std::string> needed;
  std::vector<BuiltSymbol> symbols;
  std::vector<std::pair<std::string, std::string>> version_needs;  // library, version
  std::vector<BuiltRelocation> relocations;
  std::optional<std::size_t> function_addresses =
      0;                            // where their addresses begin, from code_address()
  std::size_t plt_relocations = 0;  // so many of the last are listed as function references too
  std::string arm_attributes;       // content of a section of that type, if not empty
  std::vector<std::pair<std::uint64_t, std::uint64_t>> more_dynamic;

  // Where symbols point: 64 zero bytes.
  std::uint64_t code_address() const {
    return bits == 64 ? sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr)
                      : sizeof(Elf32_Ehdr) + 2 * sizeof(Elf32_Phdr);
  }

  // One readable, writable and executable segment holds everything: file offsets are addresses.
  std::vector<std::byte> build() {
    const std::size_t word = static_cast<std::size_t>(bits) / 8;
    const std::size_t header_bytes = bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    const std::size_t segment_bytes = bits == 64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    const std::size_t symbol_bytes = bits == 64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    const std::size_t symbol_count = symbols.size() + 1;

    strings_.assign(1, '\0');
    std::vector<std::pair<std::uint64_t, std::uint64_t>> dynamic;
    for (const std::string& library : needed) {
      dynamic.emplace_back(DT_NEEDED, string(library));
    }

    // The code comes first, so that its address does not depend on the rest.
    const std::size_t code = code_address();
    const std::size_t symbol_table = code + 64;
    const std::size_t hash = symbol_table + symbol_count * symbol_bytes;
    const std::size_t hash_bytes = 4 * (2 + 1 + symbol_count);
    std::vector<std::byte> tables;
    for (std::size_t i = 0; i < version_needs.size(); ++i) {
      const bool last = i + 1 == version_needs.size();
      put(tables, 1, 2);
      put(tables, 1, 2);
      put(tables, string(version_needs[i].first), 4);
      put(tables, 16, 4);
      put(tables, last ? 0 : 32, 4);
      put(tables, 0, 4);
      put(tables, 0, 2);
      put(tables, 2 + i, 2);
      put(tables, string(version_needs[i].second), 4);
      put(tables, 0, 4);
    }

    std::vector<std::byte> symbol_entries(symbol_bytes, std::byte{0});
    for (const BuiltSymbol& symbol : symbols) {
      const unsigned info = (symbol.weak ? STB_WEAK : STB_GLOBAL) << 4 | symbol.type;
      const std::uint64_t address = symbol.defined ? code : 0;
      const std::uint64_t size = symbol.defined ? word : 0;
      const unsigned section = symbol.defined ? 1 : SHN_UNDEF;
      put(symbol_entries, string(symbol.name), 4);
      if (bits == 64) {
        put(symbol_entries, info, 1);
        put(symbol_entries, 0, 1);
        put(symbol_entries, section, 2);
      }
      put(symbol_entries, address, word);
      put(symbol_entries, size, word);
      if (bits == 32) {
        put(symbol_entries, info, 1);
        put(symbol_entries, 0, 1);
        put(symbol_entries, section, 2);
      }
    }

    const std::size_t version_table = hash + hash_bytes;
    const std::size_t symbol_versions = version_table + tables.size();
    for (std::size_t i = 0; i < symbol_count && !version_needs.empty(); ++i) {
      put(tables, i == 0 ? 0 : 1, 2);
    }
    while ((version_table + tables.size()) % word != 0) put(tables, 0, 1);
    const std::size_t relocation_table = version_table + tables.size();
    for (const BuiltRelocation& relocation : relocations) {
      put(tables, code + relocation.place, word);
      const std::uint64_t symbol = relocation.symbol;
      put(tables, bits == 64 ? symbol << 32 | relocation.kind : symbol << 8 | relocation.kind,
          word);
      put(tables, relocation.addend, word);
    }
    const std::size_t string_table = version_table + tables.size();
    while ((string_table + strings_.size()) % word != 0) strings_.push_back('\0');
    const std::size_t dynamic_table = string_table + strings_.size();
    dynamic.emplace_back(DT_HASH, hash);
    dynamic.emplace_back(DT_SYMTAB, symbol_table);
    dynamic.emplace_back(DT_SYMENT, symbol_bytes);
    dynamic.emplace_back(DT_STRTAB, string_table);
    dynamic.emplace_back(DT_STRSZ, strings_.size());
    if (!version_needs.empty()) {
      dynamic.emplace_back(DT_VERNEED, version_table);
      dynamic.emplace_back(DT_VERNEEDNUM, version_needs.size());
      dynamic.emplace_back(DT_VERSYM, symbol_versions);
    }
    if (!relocations.empty()) {
      dynamic.emplace_back(DT_RELA, relocation_table);
      dynamic.emplace_back(DT_RELASZ, 3 * word * relocations.size());
      dynamic.emplace_back(DT_RELAENT, 3 * word);
    }
    if (plt_relocations != 0) {
      dynamic.emplace_back(DT_JMPREL,
                           relocation_table + 3 * word * (relocations.size() - plt_relocations));
      dynamic.emplace_back(DT_PLTRELSZ, 3 * word * plt_relocations);
      dynamic.emplace_back(DT_PLTREL, DT_RELA);
      if (function_addresses) dynamic.emplace_back(DT_PLTGOT, code + *function_addresses);
    }
    dynamic.insert(dynamic.end(), more_dynamic.begin(), more_dynamic.end());
    dynamic.emplace_back(DT_NULL, 0);
    const std::size_t dynamic_bytes = dynamic.size() * 2 * word;
    const std::size_t image_bytes = dynamic_table + dynamic_bytes;

    std::vector<std::byte> out;
    for (const unsigned byte :
         {0x7f, 0x45, 0x4c, 0x46, bits == 64 ? 2 : 1, little_endian ? 1 : 2, 1}) {
      put(out, byte, 1);
    }
    out.resize(EI_NIDENT);
    const bool sections = !arm_attributes.empty();
    put(out, type, 2);
    put(out, machine, 2);
    put(out, 1, 4);
    put(out, 0, word);
    put(out, header_bytes, word);
    put(out, sections ? image_bytes + arm_attributes.size() : 0, word);
    put(out, flags, 4);
    put(out, header_bytes, 2);
    put(out, segment_bytes, 2);
    put(out, 2, 2);
    put(out, bits == 64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2);
    put(out, sections ? 1 : 0, 2);
    put(out, 0, 2);
    segment(out, PT_LOAD, PF_R | PF_W | PF_X, 0, image_bytes, 0x1000);
    segment(out, PT_DYNAMIC, PF_R | PF_W, dynamic_table, dynamic_bytes, word);
    out.resize(symbol_table);
    out.insert(out.end(), symbol_entries.begin(), symbol_entries.end());
    // One bucket, whose chain runs through all symbols.
    put(out, 1, 4);
    put(out, symbol_count, 4);
    put(out, symbol_count > 1 ? 1 : 0, 4);
    put(out, 0, 4);
    for (std::size_t i = 1; i < symbol_count; ++i) {
      put(out, i + 1 < symbol_count ? i + 1 : 0, 4);
    }
    out.insert(out.end(), tables.begin(), tables.end());
    append(out, strings_);
    for (const auto& [tag, value] : dynamic) {
      put(out, tag, word);
      put(out, value, word);
    }
    if (sections) {
      append(out, arm_attributes);
      put(out, 0, 4);
      put(out, 0x70000003, 4);  // SHT_ARM_ATTRIBUTES
      put(out, 0, word);
      put(out, 0, word);
      put(out, image_bytes, word);
      put(out, arm_attributes.size(), word);
      put(out, 0, 4);
      put(out, 0, 4);
      put(out, 1, word);
      put(out, 0, word);
    }
    return out;
  }

 private:
  std::size_t string(const std::string& text) {
    const std::size_t offset = strings_.size();
    strings_ += text;
    strings_ += '\0';
    return offset;
  }

  void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t shift = little_endian ? i : size - 1 - i;
      out.push_back(static_cast<std::byte>(value >> (8 * shift)));
    }
  }

  static void append(std::vector<std::byte>& out, const std::string& text) {
    for (const char c : text) {
      out.push_back(static_cast<std::byte>(c));
    }
  }

  void segment(std::vector<std::byte>& out, std::uint32_t kind, std::uint32_t access,
               std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) const {
    const std::size_t word = static_cast<std::size_t>(bits) / 8;
    put(out, kind, 4);
    if (bits == 64) {
      put(out, access, 4);
    }
    put(out, offset, word);
    put(out, offset, word);
    put(out, offset, word);
    put(out, size, word);
    put(out, size, word);
    if (bits == 32) {
      put(out, access, 4);
    }
    put(out, alignment, word);
  }

  std::string strings_;
};

}  // namespace run_model::testing_elf
