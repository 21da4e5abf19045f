#include "artifacts/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <run_model/error.h>
#include "artifacts/tar_header.h"
#include "base/text.h"

namespace run_model {
namespace {

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
    std::size_t length = 0;
    const char* begin = rest.data();
    const auto [end, error] = std::from_chars(begin, begin + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - begin);
    // "N k=\n" is the shortest.
    if (error != std::errc() || length > rest.size() || length < digits + 4 ||
        rest[digits] != ' ' || rest[length - 1] != '\n') {
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
    std::uint64_t bytes = 0;
    const char* stop = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), stop, bytes);
    if (parsed.ec != std::errc() || parsed.ptr != stop)
      fail("an extended header's size is no number");
    next_.bytes = bytes;
  }
}

void TarReader::add_file(const std::string& name, std::span<const std::byte> bytes) {
  auto inner = inner_name(name);
  if (!inner) fail("the name " + in_quotes(name) + " does not stand for a file inside of it");
  if (find(*inner) != nullptr) fail("it holds " + in_quotes(*inner) + " twice");
  entries_.push_back({std::move(*inner), bytes});
}

}  // namespace run_model
