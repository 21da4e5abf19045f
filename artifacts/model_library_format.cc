#include "artifacts/model_library_format.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include <run_model/error.h>
#include "base/json.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::int64_t kNewestVersion = 7;

// "executors" since version 2, "runtimes" before.
std::vector<std::string> executors_of(const JsonField& model) {
  auto list = find_member(model, "executors");
  if (!list) list = find_member(model, "runtimes");
  std::vector<std::string> names;
  if (!list) return names;
  for (std::size_t i = 0; i < list->array_size(); ++i) names.push_back(list->at(i).string());
  return names;
}

}  // namespace

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
  std::string list;
  for (const std::string& executor : executors) {
    list += (list.empty() ? "" : ", ") + in_quotes(executor);
  }
  throw Error(ErrorKind::kIncompatible,
              source + " was compiled for the executor " + (list.empty() ? "'unknown'" : list) +
                  ", and run_model has the graph executor only",
              "compile with --executor graph");
}

}  // namespace run_model
