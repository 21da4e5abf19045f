#include "artifacts/formats/tar.h"

#include <algorithm>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// The bytes before each member, and what members are filled up to.
constexpr std::size_t kTarBlock = 512;

struct TarHeader {
  std::string name;  // prefix and name, joined
  std::uint64_t bytes = 0;
  char type = '0';  // '0' file, '5' folder, 'x' and 'g' pax records, 'L' GNU long name …
};

struct Field {
  std::size_t offset;
  std::size_t length;
};

// Offsets of POSIX.1-2017 pax, table "ustar Header Block".
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagicField{257, 8};
constexpr Field kPrefix{345, 155};

// "ustar" and a version in POSIX archives, two blanks and a zero instead in those of GNU tar.
constexpr std::string_view kPosixMagic("ustar\0"
                                       "00",
                                       8);
constexpr std::string_view kGnuMagic("ustar  \0", 8);

std::string_view field(std::span<const std::byte> block, Field where) {
  return as_text(block).substr(where.offset, where.length);
}

std::string_view text(std::span<const std::byte> block, Field where) {
  const std::string_view all = field(block, where);
  return all.substr(0, all.find('\0'));
}

// Octal digits between blanks and zeros, or, with the highest bit set, a big-endian number.
std::optional<std::uint64_t> number(std::string_view digits) {
  if (!digits.empty() && (static_cast<unsigned char>(digits[0]) & 0x80) != 0) {
    std::uint64_t value = static_cast<unsigned char>(digits[0]) & 0x7F;
    for (const char c : digits.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::size_t first = digits.find_first_not_of(' ');
  const std::size_t end =
      std::min(digits.find_first_of(std::string_view(" \0", 2), first == digits.npos ? 0 : first),
               digits.size());
  if (first == digits.npos || first == end) return std::nullopt;
  if (digits.find_first_not_of(std::string_view(" \0", 2), end) != digits.npos) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits.substr(first, end - first)) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The sum of all bytes, those of the checksum itself taken for blanks.
std::uint64_t sum(std::span<const std::byte> block) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    total += own ? ' ' : std::to_integer<std::uint64_t>(block[i]);
  }
  return total;
}

bool is_zero_block(std::span<const std::byte> block) {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

// What is wrong with a header that is no header is said in `problem`, as in "its checksum is
// wrong"; nothing is returned then. `block` has kTarBlock bytes.
std::optional<TarHeader> parse_tar_header(std::span<const std::byte> block, std::string& problem) {
  if (number(field(block, kChecksum)) != sum(block)) {
    problem = "its checksum is wrong";
    return std::nullopt;
  }
  const std::string_view magic = field(block, kMagicField);
  if (magic != kPosixMagic && magic != kGnuMagic) {
    problem = "it is neither POSIX's nor GNU's";
    return std::nullopt;
  }
  const auto bytes = number(field(block, kSize));
  if (!bytes) {
    problem = "its size is no number";
    return std::nullopt;
  }
  TarHeader header;
  header.bytes = *bytes;
  header.type = static_cast<char>(block[kType]);
  header.name = text(block, kName);
  // GNU tar keeps times where POSIX has the prefix.
  const std::string_view prefix = magic == kPosixMagic ? text(block, kPrefix) : "";
  if (!prefix.empty()) header.name = std::string(prefix) + "/" + header.name;
  return header;
}

// "a symbolic link", "a device" …: the types that hold no bytes of their own.
std::string_view tar_type_name(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
    case 'K':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "neither a file nor a folder";
  }
}

// A package has three files, and a Model Library Format archive a few dozen.
constexpr std::size_t kMaxMembers = 4096;
constexpr std::size_t kMaxNameLength = 4096;
constexpr std::size_t kMaxExtendedHeader = std::size_t{1} << 20;

// Without "./" in front; nothing where the name leads outside of the archive or to no file.
std::optional<std::string> inner_name(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  if (name.empty() || name.size() > kMaxNameLength || name.starts_with('/')) return std::nullopt;
  if (name.find('\0') != name.npos) return std::nullopt;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == ".." || part.empty()) return std::nullopt;
    begin = end + 1;
  }
  return std::string(name);
}

}  // namespace

TarReader::TarReader(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  read_all();
}

const TarEntry* TarReader::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const TarEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

void TarReader::fail(const std::string& why) const {
  throw Error(ErrorKind::kFormat, name_ + " is no tar archive that can be read: " + why,
              "copy or make it again");
}

std::span<const std::byte> TarReader::take(std::uint64_t bytes, const std::string& what) {
  if (bytes > bytes_.size() - position_) {
    fail("it is cut off: " + what + " takes " + std::to_string(bytes) + " bytes, and " +
         std::to_string(bytes_.size() - position_) + " are left");
  }
  const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(bytes));
  position_ += taken.size();
  return taken;
}

void TarReader::read_all() {
  while (true) {
    const auto block = take(kTarBlock, "a header or the end mark");
    if (is_zero_block(block)) break;
    if (++members_ > kMaxMembers) {
      fail("it has more than the " + std::to_string(kMaxMembers) +
           " members that an artifact can have");
    }
    read_member(block);
  }
  check_end();
}

// Archives end with two blocks of zeros and are then filled up with more.
void TarReader::check_end() const {
  if (next_.name || next_.bytes) fail("its last header describes a member that is not there");
  if (!is_zero_block(bytes_.subspan(position_))) fail("something follows its end mark");
}

void TarReader::read_member(std::span<const std::byte> block) {
  std::string problem;
  const auto header = parse_tar_header(block, problem);
  if (!header) {
    fail("the header at byte " + std::to_string(position_ - kTarBlock) + " is damaged: " + problem);
  }
  const bool describes = header->type == 'x' || header->type == 'g' || header->type == 'L';
  if (describes && header->bytes > kMaxExtendedHeader) {
    fail("an extended header claims " + std::to_string(header->bytes) + " bytes");
  }
  const std::string name = !describes && next_.name ? *next_.name : header->name;
  const std::uint64_t bytes = !describes && next_.bytes ? *next_.bytes : header->bytes;
  const auto content = take(bytes, in_quotes(name));
  // Every member is filled up to whole blocks.
  take(-bytes % kTarBlock, "the rest of the last block of " + in_quotes(name));

  switch (header->type) {
    case 'x':
      read_pax_records(content);
      return;
    case 'g':
      // Records for all members, such as a comment; one that names or measures a file is of no use.
      return;
    case 'L':
      next_.name = std::string(as_text(content).substr(0, as_text(content).find('\0')));
      return;
    case '5':
      if (bytes != 0) fail("the folder " + in_quotes(name) + " has content");
      break;
    case '0':
    case '7':
    case '\0':
      add_file(name, content);
      break;
    default:
      fail(in_quotes(name) + " is " + std::string(tar_type_name(header->type)) +
           ", and an artifact consists of files");
  }
  next_ = {};
}

// Records "LENGTH KEY=VALUE\n"; LENGTH counts all of it, itself included.
void TarReader::read_pax_records(std::span<const std::byte> records) {
  std::string_view rest = as_text(records);
  while (!rest.empty()) {
    std::string_view behind = rest;
    const std::size_t length = take_number<std::size_t>(behind).value_or(0);
    const std::size_t digits = rest.size() - behind.size();
    // "N k=\n" is the shortest.
    if (length > rest.size() || length < digits + 4 || rest[digits] != ' ' ||
        rest[length - 1] != '\n') {
      fail("a record of an extended header is damaged");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) fail("a record of an extended header is damaged");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") next_.name = std::string(value);
    if (key.starts_with("GNU.sparse.")) fail("it holds a sparse file");
    if (key != "size") continue;
    next_.bytes = whole_number<std::uint64_t>(value);
    if (!next_.bytes) fail("an extended header's size is no number");
  }
}

void TarReader::add_file(const std::string& name, std::span<const std::byte> bytes) {
  auto inner = inner_name(name);
  if (!inner) fail("the name " + in_quotes(name) + " does not stand for a file inside of it");
  if (find(*inner) != nullptr) fail("it holds " + in_quotes(*inner) + " twice");
  entries_.push_back({std::move(*inner), bytes});
}

}  // namespace run_model
