// What drivers have compiled, kept in the user's cache folder so that the next start is fast.
//
// Nothing here throws or fails: without a cache everything is compiled again. Several processes may
// use one folder at once. An entry is whole or not there: it is renamed into place, and a damaged
// one is removed when it is read. Nobody but the user may write to the folder, for drivers execute
// what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

class CodeCache {
 public:
  // Holds at most `most_bytes`; above that, what was not used for the longest time goes.
  explicit CodeCache(std::filesystem::path folder,
                     std::uint64_t most_bytes = std::uint64_t{256} << 20);

  // $XDG_CACHE_HOME/run_model/kernels, or ~/.cache/run_model/kernels; another folder where
  // RUN_MODEL_KERNEL_CACHE names one. Null where that is "off", or where there is no such folder
  // and none can be made.
  static std::unique_ptr<const CodeCache> open_for_user();
  // The same, opened once for the whole program.
  static const CodeCache* of_user();

  // The name of an entry: of everything that what is compiled depends on. Device and driver with
  // their versions, options, the code itself.
  static std::string key(std::initializer_list<std::string_view> parts);

  std::optional<std::vector<std::byte>> find(const std::string& key) const noexcept;
  void keep(const std::string& key, std::span<const std::byte> bytes) const noexcept;

 private:
  std::filesystem::path file_of(const std::string& key) const;
  void make_room() const;

  std::filesystem::path folder_;
  std::uint64_t most_bytes_;
};

}  // namespace run_model
