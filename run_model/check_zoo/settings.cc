#include "run_model/check_zoo/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <thread>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/text.h"
#include "run_model/check_zoo/flags.h"
#include "run_model/check_zoo/forms.h"
#include "run_model/shared/arguments.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

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
  if (FLAGS_forms == "all") return {kForms.begin(), kForms.end()};
  std::vector<std::string> items = names("forms", FLAGS_forms);
  for (const std::string& item : items) {
    if (std::find(kForms.begin(), kForms.end(), item) != kForms.end()) continue;
    std::string known;
    for (const std::string_view form : kForms) known += std::string(form) + ", ";
    fail("--forms has " + in_quotes(item) + ", expected some of " + known + "or all");
  }
  return items;
}

Shard shard() {
  if (FLAGS_shard.empty()) return {};
  const char* end = FLAGS_shard.data() + FLAGS_shard.size();
  std::size_t index = 0;
  std::size_t count = 0;
  const auto first = std::from_chars(FLAGS_shard.data(), end, index);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, count);
    if (second.ec == std::errc() && second.ptr == end && index >= 1 && index <= count) {
      return {index - 1, count};
    }
  }
  fail("--shard is " + in_quotes(FLAGS_shard) + ", expected I/N, as in 1/4 for the first of four");
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
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
  for (const std::string& item : split("golden", FLAGS_golden)) folders.emplace_back(item);
  if (!folders.empty()) return folders;
  folders.push_back(zoo / "golden");
  if (!is_there(folders[0])) folders[0] = fs::path("artifacts") / "golden";
  const fs::path made = fs::path("build") / "zoo" / "golden";
  if (is_there(made)) folders.push_back(made);
  return folders;
}

fs::path labels_file() {
  if (flag_is_set("labels")) return FLAGS_labels;
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
  for (const std::string name : {"artifacts", "golden", "images", "tolerances", "targets", "labels",
                                 "programs", "threads", "timeout"}) {
    const auto info = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    if (!info.is_default) flags.push_back("--" + name + "=" + info.current_value);
  }
  return flags;
}

CheckAction requested_action() {
  const auto is_on = [](const char* name) {
    return gflags::GetCommandLineFlagInfoOrDie(name).current_value == "true";
  };
  if (is_on("help")) return CheckAction::kHelp;
  if (is_on("helpfull")) return CheckAction::kFullHelp;
  if (is_on("version")) return CheckAction::kVersion;
  return FLAGS_worker ? CheckAction::kWorker : CheckAction::kCheck;
}

}  // namespace

CheckSettings read_check_settings(std::span<const std::string> args) {
  const Arguments arguments = split_arguments(args);
  set_flags(arguments.flags);
  if (!arguments.positional.empty()) {
    fail("there is no use for the argument " + in_quotes(arguments.positional[0]));
  }
  CheckSettings settings;
  settings.action = requested_action();
  settings.artifacts = FLAGS_artifacts;
  settings.golden = golden_folders(settings.artifacts);
  settings.images = FLAGS_images;
  settings.tolerances = data_file(FLAGS_tolerances, settings.artifacts, "tolerances.json");
  settings.targets_file = FLAGS_targets;
  settings.labels = labels_file();
  settings.programs = FLAGS_programs;
  settings.intermediates = FLAGS_intermediates;
  settings.models = names("models", FLAGS_models);
  settings.all_targets = FLAGS_target == "all";
  if (!settings.all_targets) settings.targets = names("target", FLAGS_target);
  settings.forms = forms();
  if (settings.forms.empty()) fail("--forms is empty");
  settings.pictures = names("pictures", FLAGS_pictures);
  settings.shard = shard();
  settings.jobs = count_flag("jobs", FLAGS_jobs, kMaxJobs);
  if (settings.jobs == 0) {
    settings.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  settings.threads = count_flag("threads", FLAGS_threads, ThreadPool::kMaxThreads);
  settings.timeout = FLAGS_timeout;
  if (!(settings.timeout > 0) || !std::isfinite(settings.timeout)) {
    fail("--timeout is " + std::to_string(settings.timeout) + ", expected seconds above 0");
  }
  settings.junit = FLAGS_junit;
  settings.json = FLAGS_json;
  settings.verbose = FLAGS_verbose;
  settings.allow_skip = FLAGS_allow_skip;
  settings.locate = FLAGS_locate;
  settings.given = given_flags();
  return settings;
}

std::vector<std::string> file_flags(const CheckSettings& settings) {
  std::string golden;
  for (const fs::path& folder : settings.golden) {
    golden += (golden.empty() ? "" : ",") + folder.string();
  }
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
