#include "rpc/server/sessions/confinement.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file.h"

namespace run_model::rpc {
namespace {

// linux/landlock.h of Linux 6.12, which the headers of many systems are older than. Numbers of
// system calls are the same on every architecture.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;
constexpr int kPathBeneath = 1;

struct RulesetAttributes {
  std::uint64_t file_access;
  std::uint64_t network_access;
  std::uint64_t scopes;
};

struct [[gnu::packed]] PathRule {
  std::uint64_t allowed;
  std::int32_t parent;
};

enum FileAccess : std::uint64_t {
  kWriteFile = 1 << 1,
  kRemoveAndMake = ((1 << 13) - 1) & ~((1 << 4) - 1),  // bits 4 to 12, one for each kind of file
  kRefer = 1 << 13,                                    // rename into another folder
  kTruncate = 1 << 14,
};
enum NetworkAccess : std::uint64_t { kConnectTcp = 1 << 1 };
enum Scope : std::uint64_t { kScopeAbstractSockets = 1 << 0, kScopeSignals = 1 << 1 };

// Versions of the interface. The first has no right to rename between two folders, which linking
// uploaded objects needs.
constexpr long kFirstWithRefer = 2;
constexpr long kFirstWithTruncate = 3;
constexpr long kFirstWithNetwork = 4;
constexpr long kFirstWithScopes = 6;

bool allow(int ruleset, const std::filesystem::path& path, std::uint64_t access) {
  const OwnedFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const PathRule rule{access, place.get()};
  return place && ::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0U) == 0;
}

// What drivers of GPUs open to talk to them, by the beginnings of the names in /dev: NVIDIA's on
// desktops and on Tegra, Mesa's and AMD's, Arm's, Qualcomm's and Windows's.
constexpr std::array<std::string_view, 10> kGpus = {"nvidia", "nvmap", "nvhost-", "nvgpu", "dri",
                                                    "kfd",    "mali",  "kgsl-",   "dxg",   "pvr"};

void allow_gpus(int ruleset, std::uint64_t access) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", none)) {
    const std::string name = entry.path().filename();
    const bool gpu = std::any_of(kGpus.begin(), kGpus.end(),
                                 [&](std::string_view begin) { return name.starts_with(begin); });
    if (gpu) allow(ruleset, entry.path(), access);
  }
}

}  // namespace

bool write_only_below(const std::filesystem::path& folder) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0UL, kAskVersion);
  if (version < kFirstWithRefer) return false;
  RulesetAttributes handled{};
  const std::uint64_t write =
      kWriteFile | (version >= kFirstWithTruncate ? std::uint64_t{kTruncate} : 0);
  handled.file_access = write | kRemoveAndMake | kRefer;
  if (version >= kFirstWithNetwork) handled.network_access = kConnectTcp;
  if (version >= kFirstWithScopes) handled.scopes = kScopeAbstractSockets | kScopeSignals;
  const OwnedFd ruleset(static_cast<int>(::syscall(kCreateRuleset, &handled, sizeof(handled), 0U)));
  if (ruleset) allow_gpus(ruleset.get(), write);
  return ruleset && allow(ruleset.get(), folder, handled.file_access) &&
         allow(ruleset.get(), "/dev/null", write) &&
         ::syscall(kRestrictSelf, ruleset.get(), 0U) == 0;
}

}  // namespace run_model::rpc
