#include "artifacts/archive_package.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <run_model/error.h>
#include "artifacts/formats/deflate.h"
#include "artifacts/formats/tar.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/text.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNewestVersion = 7;

// "executors" since version 2, "runtimes" before.
std::vector<std::string> executors_of(const JsonField& model) {
  auto list = find_member(model, "executors");
  if (!list) list = find_member(model, "runtimes");
  return list ? strings_field(*list) : std::vector<std::string>();
}

// Accepts metadata.json of a Model Library Format archive of one model for the graph executor.
// Fields read from TVM's model_library_format.py, versions 1 (0.8 in the making) to 7 (0.10 to
// 0.19). `source` names the archive.
void check_library_format(std::span<const std::byte> metadata, const std::string& source) {
  const std::string name = "metadata.json in " + source;
  const JsonDocument document(as_text(metadata), name);
  const JsonField root = document.root();
  const auto version = find_member(root, "version");
  if (!version) {
    throw Error(ErrorKind::kFormat,
                source +
                    " is a tar archive without a library, and its metadata.json is not that of "
                    "the Model Library Format",
                "give the archive that tvmc compile wrote");
  }
  const std::int64_t number = version->integer(1, std::numeric_limits<std::int32_t>::max());
  if (number > kNewestVersion) {
    throw Error(ErrorKind::kIncompatible,
                source + " is in version " + std::to_string(number) +
                    " of the Model Library Format, and run_model knows 1 to " +
                    std::to_string(kNewestVersion),
                "make it with TVM 0.8 to 0.19");
  }
  std::vector<std::string> executors;
  // Since version 7 an archive can hold several models.
  if (const auto modules = find_member(root, "modules")) {
    const std::vector<std::string> keys = modules->keys();
    if (keys.size() != 1) {
      throw Error(ErrorKind::kIncompatible,
                  source + " holds " + std::to_string(keys.size()) +
                      " models, and run_model runs archives of one",
                  "export each model by itself");
    }
    executors = executors_of(modules->member(keys.front()));
  } else {
    executors = executors_of(root);
  }
  if (std::find(executors.begin(), executors.end(), "graph") != executors.end()) return;
  const std::string list = comma_list(executors, [](const std::string& e) { return in_quotes(e); });
  throw Error(ErrorKind::kIncompatible,
              source + " was compiled for the executor " + (list.empty() ? "'unknown'" : list) +
                  ", and run_model has the graph executor only",
              "compile with --executor graph");
}

// tvmc's name for the pieces, and compile_model's.
constexpr std::array<std::string_view, 2> kStems{"mod", "model"};

struct Pieces {
  const TarEntry* library = nullptr;
  const TarEntry* graph = nullptr;
  const TarEntry* params = nullptr;
};

class Archive {
 public:
  Archive(const fs::path& path, std::span<const std::byte> bytes)
      : path_(path), tar_(bytes, path_in_quotes(path)) {}

  UnpackedArchive unpack() const {
    const Pieces pieces = find_pieces();
    UnpackedArchive unpacked;
    const auto add = [&](const TarEntry* entry) -> fs::path {
      if (entry == nullptr) return {};
      unpacked.pieces.push_back(
          MemoryFile::create(path_.string() + "/" + entry->name, entry->bytes));
      return unpacked.pieces.back()->path();
    };
    unpacked.files = {add(pieces.library), add(pieces.graph), add(pieces.params)};
    return unpacked;
  }

 private:
  Pieces find_pieces() const {
    for (const std::string_view stem : kStems) {
      const std::string name(stem);
      const TarEntry* library = tar_.find(name + ".so");
      if (library == nullptr) continue;
      return {library, tar_.find(name + ".json"), tar_.find(name + ".params")};
    }
    if (const TarEntry* metadata = tar_.find("metadata.json"); metadata != nullptr) {
      check_library_format(metadata->bytes, path_in_quotes(path_));
      return library_format_pieces();
    }
    if (tar_.find("mod.tar") != nullptr) refuse_unlinked();
    if (tar_.find("lib.so") != nullptr || tar_.find("lib.tar") != nullptr) {
      throw Error(ErrorKind::kIncompatible,
                  path_in_quotes(path_) + " was compiled for TVM's Relay virtual machine, which "
                                          "run_model does not have",
                  "compile for the graph executor: tvmc compile without --executor vm");
    }
    const std::span<const TarEntry> entries = tar_.entries();
    if (!entries.empty() && std::all_of(entries.begin(), entries.end(), [](const TarEntry& entry) {
          return entry.name.ends_with(".o");
        })) {
      throw Error(ErrorKind::kIncompatible,
                  path_in_quotes(path_) +
                      " holds objects that are yet to be linked, as TVM's "
                      "export_library() writes them into a .tar: " +
                      list_files(),
                  "unpack and link them, g++ -shared -o model.so *.o, or export to model.so");
    }
    throw Error(ErrorKind::kFormat,
                path_in_quotes(path_) +
                    " is a tar archive without a model: it has neither mod.so, "
                    "as tvmc's packages, nor metadata.json, as the Model "
                    "Library Format; it holds " +
                    list_files(),
                "give the archive that tvmc compile wrote");
  }

  Pieces library_format_pieces() const {
    Pieces pieces;
    // Version 1 says runtime-config, and graph.json was <module>.graph at times.
    pieces.graph = only_file({"executor-config/graph/", "runtime-config/graph/"},
                             {".json", ".graph"}, "graph");
    pieces.params = only_file({"parameters/"}, {".params"}, "file of parameters");
    pieces.library = only_file({"codegen/", "lib/", "runtime/"}, {".so"}, "shared library");
    if (pieces.graph == nullptr) {
      throw Error(ErrorKind::kFormat,
                  path_in_quotes(path_) + " is a Model Library Format archive without a graph, "
                                          "although it says that it is for the graph executor",
                  "make it again");
    }
    if (pieces.library == nullptr) refuse_unlinked();
    return pieces;
  }

  // The file in one of the folders with one of the suffixes; null where there is none.
  const TarEntry* only_file(std::initializer_list<std::string_view> folders,
                            std::initializer_list<std::string_view> suffixes,
                            const std::string& what) const {
    const TarEntry* found = nullptr;
    for (const TarEntry& entry : tar_.entries()) {
      const auto begins = [&](std::string_view folder) { return entry.name.starts_with(folder); };
      const auto ends = [&](std::string_view suffix) { return entry.name.ends_with(suffix); };
      if (std::none_of(folders.begin(), folders.end(), begins)) continue;
      if (std::none_of(suffixes.begin(), suffixes.end(), ends)) continue;
      if (found != nullptr) {
        throw Error(ErrorKind::kIncompatible,
                    path_in_quotes(path_) + " has more than one " + what + ": " +
                        in_quotes(found->name) + " and " + in_quotes(entry.name) +
                        "; run_model runs archives of one model",
                    "unpack the archive and give the files of the model to run");
      }
      found = &entry;
    }
    return found;
  }

  [[noreturn]] void refuse_unlinked() const {
    throw Error(ErrorKind::kIncompatible,
                path_in_quotes(path_) + " holds compiled objects or C sources that are yet to be "
                                        "linked, and run_model loads shared libraries",
                "run scripts/link_mlf on it where the compiler for this machine is, and give the "
                "folder that it makes");
  }

  std::string list_files() const {
    constexpr std::size_t kShown = 5;
    const std::span<const TarEntry> entries = tar_.entries();
    if (entries.empty()) return "no files";
    const std::string list = comma_list(entries.first(std::min(entries.size(), kShown)),
                                        [](const TarEntry& e) { return in_quotes(e.name); });
    return entries.size() > kShown ? list + " …" : list;
  }

  const fs::path& path_;
  TarReader tar_;
};

}  // namespace

UnpackedArchive unpack_archive(const fs::path& path) {
  const auto file = MappedFile::open(path, "archive");
  if (!is_gzip(file->bytes())) return Archive(path, file->bytes()).unpack();
  const std::vector<std::byte> bytes =
      gunzip(file->bytes(), kMaxArrayFileBytes, path_in_quotes(path));
  return Archive(path, bytes).unpack();
}

}  // namespace run_model
