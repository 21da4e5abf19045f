#include "runtime/elf/relocations.h"

#include <elf.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace run_model {
namespace {

constexpr std::uint64_t kTagRelrBytes = 35;  // DT_RELRSZ and DT_RELRENT, missing from older elf.h
constexpr std::uint64_t kTagRelrEntry = 37;

// The kinds of relocations that linkers leave in shared libraries; the numbers are those of each
// machine's psABI (elf.h: R_X86_64_…).
struct RelocationKinds {
  std::uint16_t machine;
  std::uint32_t relative;   // an address within the library
  std::uint32_t irelative;  // the result of a function within the library, called while loading
  std::initializer_list<std::uint32_t> thread_local_kinds;
  std::initializer_list<std::uint32_t> references;  // the address of a symbol, alone in its place
  std::initializer_list<std::uint32_t> others;      // copies excepted: only programs have those
};

const RelocationKinds kKinds[] = {
    {EM_X86_64, 8, 37, {16, 17, 18, 36}, {6, 7}, {0, 1}},
    {EM_386, 8, 42, {14, 35, 36, 37, 41}, {6, 7}, {0, 1, 2}},
    {EM_AARCH64, 1027, 1032, {1028, 1029, 1030, 1031}, {1025, 1026}, {0, 256, 257}},
    {EM_ARM, 23, 160, {13, 17, 18, 19}, {21, 22}, {0, 2}},
    {EM_RISCV, 3, 58, {6, 7, 8, 9, 10, 11, 12}, {5}, {0, 1, 2}},
};

const RelocationKinds* kinds_of(std::uint16_t machine) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [machine](const auto& k) { return k.machine == machine; });
  return found == std::end(kKinds) ? nullptr : found;
}

bool contains(std::initializer_list<std::uint32_t> list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

class RelocationCheck {
 public:
  explicit RelocationCheck(const ElfFile& file)
      : file_(file), reader_(file.reader()), kinds_(kinds_of(file.target().machine)) {
    const bool text = file.dynamic(DT_TEXTREL).has_value() ||
                      (file.dynamic(DT_FLAGS).value_or(0) & DF_TEXTREL) != 0;
    place_flags_ = text ? PF_R : PF_R | PF_W;
    for (const ElfSegment& segment : file.segments()) {
      if (segment.type == PT_LOAD) {
        image_begin_ = std::min(image_begin_, segment.address);
        image_end_ = std::max(image_end_, segment.address + segment.memory_bytes);
      }
      thread_locals_ = thread_locals_ || segment.type == PT_TLS;
      if (segment.type == PT_DYNAMIC) {
        dynamic_ = segment;
      }
    }
    add_call_list(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
    add_call_list(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
  }

  void run() {
    table(DT_RELA, DT_RELASZ, DT_RELAENT, true, DT_RELACOUNT);
    table(DT_REL, DT_RELSZ, DT_RELENT, false, DT_RELCOUNT);
    plt_table();
    packed_table();
    for (const CallList& list : call_lists_) {
      if (kinds_ != nullptr &&
          std::count(list.relocated.begin(), list.relocated.end(), false) != 0) {
        reader_.fail("an initialisation function has no address");
      }
    }
    std::sort(places_.begin(), places_.end());
    if (kinds_ != nullptr && std::adjacent_find(places_.begin(), places_.end()) != places_.end()) {
      reader_.fail("two relocations are for the same place");
    }
  }

 private:
  // Pointers to functions that the loader calls; each becomes an address by a relocation.
  struct CallList {
    std::uint64_t address;
    std::uint64_t bytes;
    std::vector<bool> relocated;
  };

  void add_call_list(std::uint64_t tag, std::uint64_t size_tag) {
    const auto address = file_.dynamic(tag);
    const auto size = file_.dynamic(size_tag);
    if (address && size && file_.file_offset(*address, *size)) {
      call_lists_.push_back({*address, *size, std::vector<bool>(*size / reader_.word_bytes())});
    }
  }

  // Notes that the word at `place` has a relocation; true when the loader calls what it points to.
  bool called_from(std::uint64_t place) {
    places_.push_back(place);
    for (CallList& list : call_lists_) {
      if (place >= list.address && place - list.address < list.bytes) {
        if ((place - list.address) % reader_.word_bytes() != 0) {
          reader_.fail("a relocation is across two initialisation functions");
        }
        list.relocated[(place - list.address) / reader_.word_bytes()] = true;
        return true;
      }
    }
    return false;
  }

  std::size_t entry_bytes(bool with_addend) const {
    return (with_addend ? 3 : 2) * reader_.word_bytes();
  }

  void table(std::uint64_t tag, std::uint64_t size_tag, std::uint64_t entry_tag, bool with_addend,
             std::uint64_t count_tag) {
    const auto address = file_.dynamic(tag);
    if (!address) {
      return;
    }
    const auto size = file_.dynamic(size_tag);
    if (!size || file_.dynamic(entry_tag) != entry_bytes(with_addend) ||
        *size % entry_bytes(with_addend) != 0) {
      reader_.fail("its table of relocations has no size or an impossible one");
    }
    entries(*address, *size, with_addend, file_.dynamic(count_tag).value_or(0));
  }

  void plt_table() {
    const auto address = file_.dynamic(DT_JMPREL);
    if (!address) {
      return;
    }
    const auto size = file_.dynamic(DT_PLTRELSZ);
    const std::uint64_t kind = file_.dynamic(DT_PLTREL).value_or(0);
    if (!size || (kind != DT_RELA && kind != DT_REL) || *size % entry_bytes(kind == DT_RELA) != 0) {
      reader_.fail("its table of function references has no size or an impossible one");
    }
    // Some linkers (RISC-V's) let the other table run on over this one.
    const std::uint64_t all = file_.dynamic(kind).value_or(0);
    const std::uint64_t all_bytes =
        file_.dynamic(kind == DT_RELA ? DT_RELASZ : DT_RELSZ).value_or(0);
    if (*address < all || *size > all_bytes || *address - all > all_bytes - *size) {
      entries(*address, *size, kind == DT_RELA, 0);
    }
  }

  // The first `relative_count` entries are taken for relative ones by the loader.
  void entries(std::uint64_t address, std::uint64_t size, bool with_addend,
               std::uint64_t relative_count) {
    const auto offset = file_.file_offset(address, size);
    const std::uint64_t count = size / entry_bytes(with_addend);
    if (!offset || relative_count > count) {
      reader_.fail("its table of relocations is not within the file");
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      ByteReader entry = reader_.at(*offset + i * entry_bytes(with_addend));
      const std::uint64_t place = entry.word();
      const std::uint64_t info = entry.word();
      const bool wide = reader_.word_bytes() == 8;
      const std::uint64_t symbol = wide ? info >> 32 : info >> 8;
      const auto kind = static_cast<std::uint32_t>(wide ? info & 0xffffffff : info & 0xff);
      if (i < relative_count && kinds_ != nullptr && kind != kinds_->relative) {
        reader_.fail("a relocation is not of the kind that it is listed under");
      }
      relocation(place, kind, symbol, with_addend ? std::optional(entry.word()) : std::nullopt);
    }
  }

  void relocation(std::uint64_t place, std::uint32_t kind, std::uint64_t symbol,
                  std::optional<std::uint64_t> addend) {
    if (kind == 0) {
      return;  // R_*_NONE on every machine
    }
    if (symbol > file_.symbols().size()) {
      reader_.fail("a relocation names a symbol that does not exist");
    }
    check_place(place);
    const bool called = called_from(place);
    if (kinds_ == nullptr) {
      return;
    }
    if (kind == kinds_->relative || kind == kinds_->irelative) {
      target(addend ? *addend : value_at(place), called || kind == kinds_->irelative);
    } else if (contains(kinds_->thread_local_kinds, kind)) {
      const bool own = symbol == 0 || file_.symbols()[symbol - 1].defined;
      if (own && !thread_locals_) {
        reader_.fail("a relocation is for a thread-local variable, and there are none");
      }
    } else if (contains(kinds_->references, kind)) {
      if (symbol == 0 || place % reader_.word_bytes() != 0) {
        reader_.fail("a relocation has no symbol, or is not where such are");
      }
    } else if (!contains(kinds_->others, kind)) {
      reader_.fail("a relocation is of the kind " + std::to_string(kind) +
                   ", which shared libraries do not have");
    }
  }

  void packed_table() {
    const auto address = file_.dynamic(kTagRelr);
    if (!address) {
      return;
    }
    const std::size_t word = reader_.word_bytes();
    const auto size = file_.dynamic(kTagRelrBytes);
    const auto offset = size ? file_.file_offset(*address, *size) : std::nullopt;
    if (!offset || file_.dynamic(kTagRelrEntry) != word || *size % word != 0) {
      reader_.fail("its table of packed relocations is not within the file");
    }
    // An even word is the address of a place; an odd one has a bit for each of the places after it.
    std::uint64_t next = 0;
    for (std::uint64_t at = 0; at < *size; at += word) {
      const std::uint64_t entry = reader_.number(*offset + at, word);
      if ((entry & 1) == 0) {
        packed_place(entry);
        next = entry + word;
        continue;
      }
      for (std::size_t bit = 1; bit < 8 * word; ++bit) {
        if ((entry >> bit & 1) != 0) {
          packed_place(next + (bit - 1) * word);
        }
      }
      next += (8 * word - 1) * word;
    }
  }

  void packed_place(std::uint64_t place) {
    check_place(place);
    target(value_at(place), called_from(place));
  }

  // The loader reads the dynamic section while it relocates, and nothing in there is relocated.
  void check_place(std::uint64_t place) const {
    const std::size_t word = reader_.word_bytes();
    if (!file_.in_image(place, word, place_flags_)) {
      reader_.fail("a relocation is not within a writable segment");
    }
    if (place + word > dynamic_.address && place < dynamic_.address + dynamic_.memory_bytes) {
      reader_.fail("a relocation is within the dynamic section");
    }
  }

  // What the file holds at an address; 0 where memory begins as zeroes.
  std::uint64_t value_at(std::uint64_t address) const {
    const auto offset = file_.file_offset(address, reader_.word_bytes());
    return offset ? reader_.number(*offset, reader_.word_bytes()) : 0;
  }

  // One past the end is a legal address too; linkers refer to the end of a section that way.
  void target(std::uint64_t address, bool called) const {
    if (called ? !begins_function(address) : address < image_begin_ || address > image_end_) {
      reader_.fail("a relocation points outside of the library");
    }
  }

  // Bit 0 of an Arm function's address tells Thumb code from Arm code, in relocations and symbols
  // alike.
  bool begins_function(std::uint64_t address) const {
    return file_.begins_function(address) ||
           (file_.target().machine == EM_ARM && file_.begins_function(address & ~std::uint64_t{1}));
  }

  const ElfFile& file_;
  ByteReader reader_;
  const RelocationKinds* kinds_;
  ElfSegment dynamic_;
  std::uint32_t place_flags_ = 0;
  std::uint64_t image_begin_ = ~std::uint64_t{0};
  std::uint64_t image_end_ = 0;
  bool thread_locals_ = false;
  std::vector<CallList> call_lists_;
  std::vector<std::uint64_t> places_;
};

}  // namespace

void check_relocations(const ElfFile& file) {
  // 64-bit MIPS has relocations of a form of its own.
  if (file.target().machine != EM_MIPS) {
    RelocationCheck(file).run();
  }
}

}  // namespace run_model
