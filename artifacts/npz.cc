#include <run_model/npz.h>

#include <cstddef>

#include <run_model/error.h>
#include <run_model/npy.h>
#include "artifacts/zip_reader.h"
#include "artifacts/zip_writer.h"
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

std::vector<NamedTensor> read_npz(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxArrayFileBytes, "a NumPy archive");
  const ZipReader archive(bytes, path_in_quotes(path));
  std::vector<NamedTensor> tensors;
  for (const ZipEntry& entry : archive.entries()) {
    const std::string member = path_in_quotes(path) + ", member " + in_quotes(entry.name);
    if (!entry.name.ends_with(kSuffix)) {
      throw Error(ErrorKind::kFormat, member + " is not an array: its name does not end in .npy",
                  "write the archive with numpy.savez");
    }
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    tensors.push_back({name, parse_npy(archive.read(entry), member)});
  }
  return tensors;
}

void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  ZipWriter archive;
  for (const NamedTensor& named : tensors) {
    const std::string header = npy_header(named.tensor);
    const std::span data(static_cast<const std::byte*>(named.tensor.data()), named.tensor.nbytes());
    archive.add(named.name + std::string(kSuffix), {std::as_bytes(std::span(header)), data});
  }
  archive.write(path);
}

}  // namespace run_model
