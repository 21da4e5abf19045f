#include "artifacts/library_machine.h"

#include <memory>
#include <optional>

#include "runtime/elf_file.h"
#include "runtime/error.h"
#include "runtime/host.h"
#include "runtime/mapped_file.h"

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
  if (!found) return false;
  const ElfTarget host = Host::current().target;
  const bool float_abi = found->float_abi == host.float_abi ||
                         found->float_abi == FloatAbi::kUnspecified ||
                         host.float_abi == FloatAbi::kUnspecified;
  return found->machine == host.machine && found->bits == host.bits &&
         found->little_endian == host.little_endian && float_abi;
}

}  // namespace run_model
