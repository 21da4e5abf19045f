#include "runtime/elf/file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/file_kind.h"
#include "runtime/elf/target.h"

namespace run_model {
namespace {

// Longer names are cut: nothing that is looked for comes near, and a string table full of
// overlapping names must not cost the square of its size.
constexpr std::size_t kMaxName = 4096;

// Linkers make a dozen. Addresses are looked for in all of them, for each section and symbol.
constexpr std::size_t kMaxSegments = 256;

constexpr char kTruncated[] = "the file is probably truncated; copy or export it again";

// The addresses and sizes within [begin, begin + length) without overflow.
bool within(std::uint64_t address, std::uint64_t length, std::uint64_t begin, std::uint64_t size) {
  return address >= begin && address - begin <= size && length <= size - (address - begin);
}

Error damaged(const ByteFault& fault) {
  const std::string name = std::string(fault.source) + " is a damaged ELF file: ";
  if (fault.past_end) {
    return {
        ErrorKind::kFormat,
        name + "it ends before byte " + std::to_string(fault.offset) + ", where its headers point",
        kTruncated};
  }
  return {ErrorKind::kFormat, name + fault.problem,
          fault.hint.empty() ? "copy or export it again" : fault.hint};
}

ByteFormat format_of(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    throw Error(ErrorKind::kFormat,
                source + " is " + file_kind(bytes) + ", expected a compiled library (ELF)",
                "give the model's .so file");
  }
  if (bytes.size() < EI_NIDENT) {
    throw Error(ErrorKind::kFormat,
                source + " is a truncated ELF file of " + std::to_string(bytes.size()) + " bytes",
                "copy or export it again");
  }
  const auto file_class = static_cast<unsigned char>(bytes[EI_CLASS]);
  const auto data = static_cast<unsigned char>(bytes[EI_DATA]);
  const auto version = static_cast<unsigned char>(bytes[EI_VERSION]);
  if ((file_class != ELFCLASS32 && file_class != ELFCLASS64) ||
      (data != ELFDATA2LSB && data != ELFDATA2MSB) || version != EV_CURRENT) {
    throw Error(ErrorKind::kFormat,
                source + " is a damaged ELF file: its identification (class " +
                    std::to_string(file_class) + ", byte order " + std::to_string(data) +
                    ", version " + std::to_string(version) + ") is not one that exists",
                "copy or export it again");
  }
  return {data == ELFDATA2LSB ? std::endian::little : std::endian::big,
          file_class == ELFCLASS64 ? std::size_t{8} : 4, damaged};
}

// Makes ranges from a first to before a last address ascending and apart.
void join_ranges(std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (const auto& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].second) {
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, range.second);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

FloatAbi float_abi(std::uint16_t machine, std::uint32_t flags, FloatAbi from_attributes) {
  if (machine == EM_ARM) {
    if ((flags & EF_ARM_ABI_FLOAT_HARD) != 0) {
      return FloatAbi::kHard;
    }
    if ((flags & EF_ARM_ABI_FLOAT_SOFT) != 0) {
      return FloatAbi::kSoft;
    }
    return from_attributes;
  }
  if (machine == EM_RISCV) {
    switch (flags & EF_RISCV_FLOAT_ABI) {
      case EF_RISCV_FLOAT_ABI_SOFT:
        return FloatAbi::kSoft;
      case EF_RISCV_FLOAT_ABI_SINGLE:
        return FloatAbi::kSingle;
      case EF_RISCV_FLOAT_ABI_DOUBLE:
        return FloatAbi::kHard;
      default:
        return FloatAbi::kQuad;
    }
  }
  return FloatAbi::kUnspecified;
}

}  // namespace

ElfFile ElfFile::parse(std::span<const std::byte> bytes, std::string source) {
  const ByteFormat format = format_of(bytes, source);
  ElfFile file(bytes, std::move(source), format);
  file.target_.bits = static_cast<int>(8 * format.word_bytes);
  file.target_.little_endian = format.order == std::endian::little;
  file.read_header();
  file.read_dynamic();
  file.read_strings();
  file.read_symbols();
  file.read_versions();
  return file;
}

void ElfFile::read_header() {
  ByteReader header = reader(EI_NIDENT);
  const std::uint16_t type = header.u16();
  target_.machine = header.u16();
  header.u32();   // e_version
  header.word();  // e_entry
  const std::uint64_t segments_offset = header.word();
  const std::uint64_t sections_offset = header.word();
  flags_ = header.u32();
  header.u16();  // e_ehsize
  const std::size_t segment_bytes = header.u16();
  const std::size_t segment_count = header.u16();
  const std::size_t section_bytes = header.u16();
  const std::size_t section_count = header.u16();

  if (type == ET_REL) {
    throw Error(ErrorKind::kFormat, source_ + " is an object file (.o), expected a shared library",
                "link it with 'cc -shared -o model.so <files>.o', or export the model with "
                "lib.export_library(\"model.so\")");
  }
  if (type == ET_EXEC) {
    throw Error(ErrorKind::kFormat, source_ + " is a program, expected a shared library",
                "give the model's .so file");
  }
  if (type != ET_DYN) {
    throw Error(
        ErrorKind::kFormat,
        source_ + " is an ELF file of type " + std::to_string(type) + ", expected a shared library",
        "give the model's .so file");
  }
  // The section headers are a linked file's last bytes, so a truncated copy shows here.
  if (sections_offset != 0 && !reader().contains(sections_offset, section_bytes * section_count)) {
    reader().fail("it has " + std::to_string(bytes_.size()) +
                      " bytes, but its section headers lie beyond them",
                  kTruncated);
  }
  read_segments(segments_offset, segment_bytes, segment_count);
  if (sections_offset != 0) {
    read_sections(sections_offset, section_bytes, section_count);
  }
  target_.float_abi = float_abi(target_.machine, flags_, attributes_float_abi_);
}

void ElfFile::read_segments(std::uint64_t offset, std::size_t entry_bytes, std::size_t count) {
  const bool wide = target_.bits == 64;
  const std::size_t expected = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (entry_bytes != expected) {
    reader().fail("its program headers take " + std::to_string(entry_bytes) +
                  " bytes each, expected " + std::to_string(expected));
  }
  if (count > kMaxSegments) {
    reader().fail("it has " + std::to_string(count) + " program headers, expected at most " +
                  std::to_string(kMaxSegments));
  }
  for (std::size_t i = 0; i < count; ++i) {
    ByteReader header = reader(offset + i * entry_bytes);
    ElfSegment segment;
    segment.type = header.u32();
    if (wide) {
      segment.flags = header.u32();
    }
    segment.offset = header.word();
    segment.address = header.word();
    header.word();  // p_paddr
    segment.file_bytes = header.word();
    segment.memory_bytes = header.word();
    if (!wide) {
      segment.flags = header.u32();
    }
    segment.alignment = header.word();
    if (segment.type == PT_LOAD && !reader().contains(segment.offset, segment.file_bytes)) {
      reader().fail("it has " + std::to_string(bytes_.size()) +
                        " bytes, but part of its code or data lies beyond them",
                    kTruncated);
    }
    segments_.push_back(segment);
  }
}

void ElfFile::read_sections(std::uint64_t offset, std::size_t entry_bytes, std::size_t count) {
  const bool wide = target_.bits == 64;
  if (entry_bytes != (wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr))) {
    return;  // sections only add hints: the loader does not look at them
  }
  for (std::size_t i = 0; i < count; ++i) {
    ByteReader header = reader(offset + i * entry_bytes);
    header.u32();  // sh_name
    const std::uint32_t type = header.u32();
    const std::uint64_t section_flags = header.word();
    const std::uint64_t address = header.word();
    const std::uint64_t content = header.word();
    const std::uint64_t bytes = header.word();
    // Both say where the same bytes go: damage to the one that the loader goes by shows.
    if ((section_flags & SHF_ALLOC) != 0 && type != SHT_NOBITS && type != SHT_NULL && bytes != 0 &&
        file_offset(address, bytes) != content) {
      reader().fail("its sections and its segments do not agree");
    }
    if ((section_flags & SHF_EXECINSTR) != 0) {
      std::uint64_t end = 0;
      if (__builtin_add_overflow(address, bytes, &end)) end = ~std::uint64_t{0};
      code_sections_.emplace_back(address, end);
    }
    if (type == SHT_DYNSYM) {
      section_symbol_count_ = bytes / symbol_bytes();
    } else if (type == SHT_SYMTAB && reader().contains(content, bytes)) {
      read_full_symbols(content, bytes);
    } else if (type == SHT_ARM_ATTRIBUTES && target_.machine == EM_ARM &&
               reader().contains(content, bytes)) {
      attributes_float_abi_ = arm_attributes_float_abi(reader().part(content, bytes));
    }
  }
  join_ranges(code_sections_);
}

void ElfFile::read_dynamic() {
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [](const ElfSegment& s) { return s.type == PT_DYNAMIC; });
  if (segment == segments_.end()) {
    throw Error(ErrorKind::kFormat, source_ + " has no dynamic section, expected a shared library",
                "give the model's .so file; a file of debugging symbols has no code");
  }
  const std::size_t entry_bytes = 2 * reader().word_bytes();
  for (std::uint64_t at = 0;; at += entry_bytes) {
    if (segment->file_bytes < entry_bytes || at > segment->file_bytes - entry_bytes) {
      reader().fail("its dynamic section has no end");
    }
    ByteReader entry = reader(segment->offset + at);
    const std::uint64_t tag = entry.word();
    const std::uint64_t value = entry.word();
    if (tag == DT_NULL) {
      break;
    }
    dynamic_.emplace_back(tag, value);
  }
  if ((dynamic(DT_FLAGS_1).value_or(0) & DF_1_PIE) != 0) {
    throw Error(ErrorKind::kFormat, source_ + " is a program, expected a shared library",
                "give the model's .so file");
  }
}

void ElfFile::read_strings() {
  const auto size = dynamic(DT_STRSZ);
  if (!dynamic(DT_STRTAB) || !size || *size == 0) {
    reader().fail("it has no table of names");
  }
  strings_ = bytes_.subspan(offset_of(DT_STRTAB, *size, "table of names"), *size);
  if (strings_.back() != std::byte{0}) {
    reader().fail("its table of names does not end with a zero byte");
  }
  for (const auto& [tag, value] : dynamic_) {
    if (tag == DT_NEEDED) {
      needed_.push_back(string_at(value));
    }
  }
}

std::string_view ElfFile::string_at(std::uint64_t offset) const {
  if (offset >= strings_.size()) {
    reader().fail("a name lies beyond its table of names");
  }
  const char* begin = reinterpret_cast<const char*>(strings_.data()) + offset;
  return {begin, ::strnlen(begin, std::min<std::uint64_t>(kMaxName, strings_.size() - offset))};
}

std::uint64_t ElfFile::offset_of(std::uint64_t tag, std::uint64_t length, const char* what) const {
  const auto offset = file_offset(dynamic(tag).value_or(0), length);
  if (!offset) {
    reader().fail(std::string("its ") + what + " is not within the file");
  }
  return *offset;
}

const ElfSymbol* ElfFile::find(std::string_view name) const {
  const auto found = definitions_.find(name);
  return found == definitions_.end() ? nullptr : &symbols_[found->second];
}

std::optional<std::uint64_t> ElfFile::dynamic(std::uint64_t tag) const {
  const auto entry = std::find_if(dynamic_.rbegin(), dynamic_.rend(),
                                  [tag](const auto& e) { return e.first == tag; });
  return entry == dynamic_.rend() ? std::nullopt : std::optional(entry->second);
}

std::optional<std::uint64_t> ElfFile::file_offset(std::uint64_t address,
                                                  std::uint64_t length) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type == PT_LOAD && within(address, length, segment.address, segment.file_bytes)) {
      return segment.offset + (address - segment.address);
    }
  }
  return std::nullopt;
}

bool ElfFile::in_image(std::uint64_t address, std::uint64_t length, std::uint32_t flags) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const ElfSegment& s) {
    return s.type == PT_LOAD && (s.flags & flags) == flags &&
           within(address, length, s.address, s.memory_bytes);
  });
}

bool ElfFile::in_code(std::uint64_t address) const {
  if (!code_sections_.empty()) {
    const auto behind = std::upper_bound(
        code_sections_.begin(), code_sections_.end(), address,
        [](std::uint64_t place, const auto& section) { return place < section.first; });
    if (behind == code_sections_.begin() || address >= std::prev(behind)->second) {
      return false;
    }
  }
  return in_image(address, 1, PF_X);
}

bool ElfFile::begins_function(std::uint64_t address) const {
  return in_code(address) && (named_functions_.empty() || named_functions_.contains(address));
}

std::span<const std::byte> ElfFile::bytes_of(const ElfSymbol& symbol) const {
  if (!symbol.defined) {
    return {};
  }
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_LOAD ||
        !within(symbol.address, symbol.bytes, segment.address, segment.file_bytes)) {
      continue;
    }
    const std::uint64_t from_start = symbol.address - segment.address;
    const std::uint64_t length = symbol.bytes != 0 ? symbol.bytes : segment.file_bytes - from_start;
    return bytes_.subspan(segment.offset + from_start, length);
  }
  return {};
}

}  // namespace run_model
