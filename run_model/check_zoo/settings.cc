#include "run_model/check_zoo/settings.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <thread>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/file.h"
#include "base/text.h"
#include "run_model/check_zoo/flags.h"
#include "run_model/check_zoo/plan.h"
#include "run_model/shared/arguments.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

[[maybe_unused]] const bool kRegistered = register_flags(kCheckManual);

constexpr int kMaxJobs = 1024;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kUsage, message, "check_zoo --help shows the usage");
}

std::vector<std::string> split(const char* flag, std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string item(text.substr(0, comma));
    if (item.empty()) fail("--" + std::string(flag) + " has an empty item");
    if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
    text.remove_prefix(comma + (comma < text.size() ? 1 : 0));
  }
  return items;
}

// A name becomes part of a path.
std::vector<std::string> names(const char* flag, std::string_view text) {
  std::vector<std::string> items = split(flag, text);
  for (const std::string& item : items) {
    if (item.find('/') == item.npos && item != "." && item != "..") continue;
    fail("--" + std::string(flag) + " has " + in_quotes(item) + ", expected names without folders");
  }
  return items;
}

std::vector<std::string> forms() {
  if (check_flags.forms == "all") return {kForms.begin(), kForms.end()};
  std::vector<std::string> items = names("forms", check_flags.forms);
  for (const std::string& item : items) {
    if (std::find(kForms.begin(), kForms.end(), item) != kForms.end()) continue;
    std::string known;
    for (const std::string_view form : kForms) known += std::string(form) + ", ";
    fail("--forms has " + in_quotes(item) + ", expected some of " + known + "or all");
  }
  return items;
}

Shard shard() {
  if (check_flags.shard.empty()) return {};
  std::string_view rest = check_flags.shard;
  const auto index = take_number<std::size_t>(rest);
  if (index && rest.starts_with('/')) {
    const auto count = whole_number<std::size_t>(rest.substr(1));
    if (count && *index >= 1 && *index <= *count) return {*index - 1, *count};
  }
  fail("--shard is " + in_quotes(check_flags.shard) +
       ", expected I/N, as in 1/4 for the first of four");
}

// The first of the places that has the file, or the first place, whose absence is then reported.
fs::path data_file(const std::string& flag, const fs::path& zoo, const char* name) {
  if (!flag.empty()) return flag;
  const fs::path installed =
      this_program().parent_path().parent_path() / "share" / "run_model" / name;
  for (const fs::path& place : {zoo / name, fs::path("artifacts") / name, installed}) {
    if (is_there(place)) return place;
  }
  return zoo / name;
}

std::vector<fs::path> golden_folders(const fs::path& zoo) {
  std::vector<fs::path> folders;
  for (const std::string& item : split("golden", check_flags.golden)) folders.emplace_back(item);
  if (!folders.empty()) return folders;
  folders.push_back(zoo / "golden");
  if (!is_there(folders[0])) folders[0] = fs::path("artifacts") / "golden";
  const fs::path made = fs::path("build") / "zoo" / "golden";
  if (is_there(made)) folders.push_back(made);
  return folders;
}

fs::path labels_file() {
  if (flag_is_set("labels")) return check_flags.labels;
  const fs::path usual = fs::path("labels") / "imagenet.txt";
  return is_there(usual) ? usual : fs::path();
}

int count_flag(const char* name, int value, int limit) {
  if (value < 0 || value > limit) {
    fail("--" + std::string(name) + " is " + std::to_string(value) + ", expected 0 to " +
         std::to_string(limit));
  }
  return value;
}

std::vector<std::string> given_flags() {
  std::vector<std::string> flags;
  for (const char* name : {"artifacts", "golden", "images", "tolerances", "targets", "labels",
                           "programs", "threads", "timeout"}) {
    if (flag_is_set(name)) flags.push_back(std::string("--") + name + "=" + flag_value(name));
  }
  return flags;
}

}  // namespace

CheckSettings read_check_settings(std::span<const std::string> args) {
  const Arguments arguments = split_arguments(kCheckManual, args);
  set_flags(kCheckManual, arguments.flags);
  if (!arguments.positional.empty()) {
    fail("there is no use for the argument " + in_quotes(arguments.positional[0]));
  }
  CheckSettings settings;
  settings.help = help_request();
  if (settings.help != HelpRequest::kNone) return settings;
  settings.worker = check_flags.worker;
  settings.artifacts = check_flags.artifacts;
  settings.golden = golden_folders(settings.artifacts);
  settings.images = check_flags.images;
  settings.tolerances = data_file(check_flags.tolerances, settings.artifacts, "tolerances.json");
  settings.targets_file = check_flags.targets;
  settings.labels = labels_file();
  settings.programs = check_flags.programs;
  settings.intermediates = check_flags.intermediates;
  settings.models = names("models", check_flags.models);
  settings.all_targets = check_flags.target == "all";
  if (!settings.all_targets) settings.targets = names("target", check_flags.target);
  settings.forms = forms();
  if (settings.forms.empty()) fail("--forms is empty");
  settings.pictures = names("pictures", check_flags.pictures);
  settings.shard = shard();
  settings.jobs = count_flag("jobs", check_flags.jobs, kMaxJobs);
  if (settings.jobs == 0) {
    settings.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  settings.threads = count_flag("threads", check_flags.threads, ThreadPool::kMaxThreads);
  settings.timeout = check_flags.timeout;
  if (!(settings.timeout > 0) || !std::isfinite(settings.timeout)) {
    fail("--timeout is " + std::to_string(settings.timeout) + ", expected seconds above 0");
  }
  settings.junit = check_flags.junit;
  settings.json = check_flags.json;
  settings.verbose = check_flags.verbose;
  settings.allow_skip = check_flags.allow_skip;
  settings.locate = check_flags.locate;
  settings.given = given_flags();
  return settings;
}

std::vector<std::string> file_flags(const CheckSettings& settings) {
  const std::string golden =
      list_of(settings.golden, ",", [](const fs::path& folder) { return folder.string(); });
  std::vector<std::string> flags{"--artifacts=" + settings.artifacts.string(), "--golden=" + golden,
                                 "--images=" + settings.images.string(),
                                 "--tolerances=" + settings.tolerances.string(),
                                 "--threads=" + std::to_string(settings.threads)};
  if (!settings.targets_file.empty()) {
    flags.push_back("--targets=" + settings.targets_file.string());
  }
  if (!settings.labels.empty()) flags.push_back("--labels=" + settings.labels.string());
  return flags;
}

fs::path this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

}  // namespace run_model
