#include "artifacts/library_machine.h"

#include <memory>
#include <optional>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "runtime/elf/file.h"
#include "runtime/elf/host.h"

namespace run_model {
namespace {

std::optional<ElfTarget> target_of(const std::filesystem::path& path) {
  try {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path, "library");
    return ElfFile::parse(file->bytes(), path.string()).target();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string library_machine(const std::filesystem::path& path) {
  const std::optional<ElfTarget> target = target_of(path);
  return target ? target_name(*target) : "";
}

bool library_fits_this_machine(const std::filesystem::path& path) {
  const std::optional<ElfTarget> found = target_of(path);
  return found && target_fits(*found, Host::current().target);
}

}  // namespace run_model
