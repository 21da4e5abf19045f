// Libraries. Damaged machine code cannot be made safe by looking at it: where nothing but a
// checksum could tell, these tests look at the file and do not load it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <run_model/module.h>
#include <run_model/package.h>
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"
#include "runtime/loading/library_check.h"
#include "tests/corruption/damage.h"
#include "tests/corruption/small_model.h"
#include "tests/corruption/sweep.h"

namespace run_model::corruption {
namespace {

void check(const std::string& bytes, const Host& host) {
  ElfFile file = ElfFile::parse(std::as_bytes(std::span(bytes)), "'model.so'");
  check_library(file, host);
  for (const ElfSymbol& symbol : file.symbols()) file.bytes_of(symbol);
}

TEST(LibrarySweep, HeadersAndTablesAreReadSafely) {
  Host host = Host::current();
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.so");
  auto read = [&](const std::string& how, const std::string& bytes) {
    sweep.accepts(how, [&] { check(bytes, host); });
  };
  std::string library = small_library();
  for_each_changed_byte(library, read, {3});
  for_each_huge_number(library, read, {8});
  for_each_shift(library, read, {61});
  for_each_truncation(library, read, {7});
  // The ELF header and the program headers, at every byte.
  std::string head = library.substr(0, 0x400);
  std::string rest = library.substr(head.size());
  auto read_head = [&](const std::string& how, const std::string& bytes) {
    read(how, bytes + rest);
  };
  for_each_changed_byte(head, read_head);
  for_each_huge_number(head, read_head);
}

// The dynamic loader maps what the program headers say: beyond the end of the file lies a SIGBUS.
// What is accepted here has lost nothing but section headers, and has to work.
TEST(LibrarySweep, TruncatedLibrariesAreNotLoaded) {
  TemporaryFolder folder;
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "model.so");
  auto load = [&](const std::string& how, const std::string& bytes) {
    // A file of its own each: the loader knows libraries that it has loaded by their inodes.
    std::filesystem::path path = folder / "model.so";
    replace_file(path, bytes);
    sweep.accepts(how, [&] {
      EXPECT_NE(Module::open(path)->find("tvmgen_default_fused_add"), nullptr) << how;
    });
  };
  for_each_truncation(small_library(), load, {97});
}

// With checksums beside it, no change to any file of an artifact gets as far as the loader.
TEST(ArtifactSweep, ChecksumsCatchEveryChange) {
  TemporaryFolder folder;
  const std::pair<const char*, std::string> pieces[] = {{"model.so", small_library()},
                                                        {"model.json", small_graph().dump()},
                                                        {"model.params", small_params()}};
  for (const auto& [name, content] : pieces) folder.write(name, content);
  folder.write("metadata.json", small_metadata(true).dump());
  PackageRequest request{"small", folder.path(), "", true};
  ASSERT_NO_THROW(open_package(request));

  for (const auto& [name, content] : pieces) {
    Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, name);
    Density density{damage_stride() * (content.size() > 5000 ? 61 : 7)};
    for_each_damage(
        content,
        [&](const std::string& how, const std::string& bytes) {
          replace_file(folder / name, bytes);
          EXPECT_FALSE(sweep.accepts(how, [&] { open_package(request); })) << name << ": " << how;
        },
        density);
    folder.write(name, content);
  }
}

TEST(ArtifactSweep, Metadata) {
  Sweep sweep({ErrorKind::kFormat, ErrorKind::kIncompatible}, "metadata.json");
  auto read = [&](const std::string& how, const std::string& text) {
    sweep.accepts(how, [&] { parse_metadata(text, "'metadata.json'"); });
  };
  for_each_damage(small_metadata(true).dump(), read);
  for_each_json_change(small_metadata(true), read);
}

}  // namespace
}  // namespace run_model::corruption
