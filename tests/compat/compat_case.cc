#include "tests/compat/compat_case.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <stdexcept>

#include "artifacts/formats/zip.h"
#include "base/file.h"
#include "runtime/cpu/features.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

fs::path data_folder() { return fs::path(RUN_MODEL_SOURCE_DIR) / "tests/compat/data"; }

void write(const fs::path& path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

// The folder or file that stands for all files of the artifact.
fs::path artifact_of(const CompatCase& compat) {
  const fs::path first = fs::path(compat.name) / compat.files.at(0);
  return compat.files.size() == 1 ? first : first.parent_path();
}

}  // namespace

namespace {

std::vector<CompatCase> read_cases(const char* file_name) {
  const fs::path path = data_folder() / file_name;
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  std::vector<CompatCase> cases;
  const auto manifest = nlohmann::json::parse(stream);
  for (const auto& entry : manifest.at("entries")) {
    CompatCase compat;
    entry.at("release").get_to(compat.release);
    entry.at("case").get_to(compat.name);
    entry.at("form").get_to(compat.form);
    entry.at("machine").get_to(compat.machine);
    entry.at("target").get_to(compat.target);
    compat.function_prefix = entry.value("function_prefix", "");
    compat.function = entry.value("function", "");
    entry.at("tolerances").get_to(compat.tolerances);
    for (const auto& [file, sha256] : entry.at("files").items()) compat.files.push_back(file);
    cases.push_back(std::move(compat));
  }
  return cases;
}

std::vector<CompatCase> of_this_machine(std::vector<CompatCase> cases) {
  std::erase_if(cases, [](const CompatCase& c) { return c.machine != RUN_MODEL_MACHINE; });
  return cases;
}

}  // namespace

std::vector<CompatCase> read_manifest() { return read_cases("manifest.json"); }
std::vector<CompatCase> read_relax_manifest() { return read_cases("relax_manifest.json"); }
std::vector<CompatCase> cases_of_this_machine() { return of_this_machine(read_manifest()); }
std::vector<CompatCase> relax_cases_of_this_machine() {
  return of_this_machine(read_relax_manifest());
}

std::string compat_test_name(const CompatCase& compat) {
  std::string name = "v" + compat.release + "_" + compat.name + "_" + compat.form;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

void PrintTo(const CompatCase& compat, std::ostream* out) {
  *out << "TVM " << compat.release << ", " << compat.name << " as " << compat.form << " for "
       << compat.target;
}

UnpackedCase::UnpackedCase(const CompatCase& compat, const fs::path& folder) {
  constexpr std::size_t kMaxArchiveBytes = std::size_t{16} << 20;
  const std::string prefix = compat.function.empty() ? "" : "relax-";
  const fs::path path = data_folder() / (prefix + compat.release + ".zip");
  const std::vector<std::byte> bytes = read_file(path, kMaxArchiveBytes, "an archive");
  const ZipReader archive(bytes, path.string());
  std::vector<std::string> wanted = compat.files;
  wanted.insert(wanted.end(), {"inputs.npz", "expected.npz"});
  for (const std::string& file : wanted) {
    const std::string member = compat.name + "/" + file;
    const auto entry = std::ranges::find(archive.entries(), member, &ZipEntry::name);
    if (entry == archive.entries().end()) {
      throw std::runtime_error(path.string() + " has no member " + member);
    }
    write(folder / member, archive.read(*entry));
  }
  artifact = folder / artifact_of(compat);
  inputs_file = folder / compat.name / "inputs.npz";
  inputs = read_npz(inputs_file);
  expected = read_npz(folder / compat.name / "expected.npz");
}

std::string missing_for(const CompatCase& compat) {
  if (compat.target.find("x86-64-v2") == std::string::npos) return "";
  const std::vector<std::string> level = {"ssse3", "sse4.1", "sse4.2", "popcnt"};
  const std::vector<std::string> missing = missing_features(level, this_cpu());
  if (missing.empty()) return "";
  return "compiled for x86-64-v2; this CPU lacks " + missing.front();
}

}  // namespace run_model
