#include "run_model/check_zoo/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"
#include "run_model/check_zoo/process.h"
#include "runtime/devices/drivers.h"
#include "runtime/elf/host.h"

namespace run_model {
FormLocation locate_form(const std::filesystem::path& zoo, const std::string& model,
                         const std::string& target, std::string_view form) {
  const std::filesystem::path folder = zoo / model / target;
  FormLocation location;
  if (form == "triple") {
    location.place = folder / "model.so";
    location.request.model = model;
    location.request.artifacts = zoo;
    location.request.target = target;
    return location;
  }
  const std::filesystem::path own = folder / "forms" / form;
  if (form == "flat") {
    location.place = own / (model + "_tvm.so");
    location.request.model = model;
    location.request.artifacts = own;
    return location;
  }
  if (form == "mod" || form == "linked") {
    location.place = own;
  } else if (form == "mlf") {
    location.place = own / "linked";
  } else {
    location.place = own / (model + (form == "single" ? ".so" : ".tar"));
  }
  location.request.artifacts = location.place;
  return location;
}

namespace {

namespace fs = std::filesystem;

// Empty where there is no such folder.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  return paths;
}

}  // namespace

std::vector<std::string> golden_models(const std::vector<fs::path>& folders) {
  std::set<std::string> models;
  for (const fs::path& folder : folders) {
    for (const fs::path& model : entries(folder)) {
      const std::string name = model.filename().string();
      if (!golden_files({folder}, name).empty()) models.insert(name);
    }
  }
  return {models.begin(), models.end()};
}

std::vector<GoldenFile> golden_files(const std::vector<fs::path>& folders,
                                     const std::string& model) {
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : entries(folder / model)) {
      if (file.extension() == ".json") found.emplace(file.stem().string(), file);
    }
  }
  std::vector<GoldenFile> files;
  for (const auto& [picture, path] : found) files.push_back({picture, path});
  return files;
}

namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& name, const std::string& search_path) {
  if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0;
  for (std::size_t start = 0; start <= search_path.size();) {
    const std::size_t colon = std::min(search_path.find(':', start), search_path.size());
    const fs::path folder = search_path.substr(start, colon - start);
    if (!folder.empty() && ::access((folder / name).c_str(), X_OK) == 0) return true;
    start = colon + 1;
  }
  return false;
}

// How code of a target is run here.
struct Way {
  std::vector<std::string> command;
  std::string impossible_because;  // empty: it is possible
};

// Why there is no device of that kind; empty where there is, and for the CPU. A copy of this
// process finds out: drivers start threads, and the copies that check networks need a process
// without any.
std::string why_no_device(const std::string& kind) {
  if (kind.empty()) return "";
  DeviceDriver* driver = driver_for(kind);
  if (driver == nullptr) return "this program was built without a driver for " + kind;
  ChildProcess child({}, [&] {
    std::cout << driver->absence().reason << '\n' << std::flush;
    return 0;
  });
  std::string reason;
  while (child.output_fd() >= 0) {
    for (const std::string& line : child.read_output()) reason += line;
  }
  const std::string failure = child.wait();
  return failure.empty() ? reason : "a process that looked for " + kind + " " + failure;
}

Way find_way(const ListedTarget& target, const CheckSettings& settings, const CheckHost& host) {
  const bool own_machine = target.machine.empty() || target.machine == host.machine;
  const std::vector<std::string> lacking =
      own_machine ? missing_features(target.features, host.cpu) : std::vector<std::string>();
  if (own_machine && lacking.empty()) return {{}, why_no_device(target.device)};

  const std::string why = own_machine
                              ? "this CPU lacks " + comma_list(lacking)
                              : "this machine is " + host.machine + ", not " + target.machine;
  if (target.emulator.empty()) return {{}, why + ", and no emulator is known"};
  if (!is_program(target.emulator[0], host.search_path)) {
    return {
        {},
        why + ", and the emulator " + target.emulator[0] + " is not installed (Debian: qemu-user)"};
  }
  // build/host/bin/check_zoo belongs to build.
  const fs::path programs = settings.programs.empty()
                                ? host.program.parent_path().parent_path().parent_path()
                                : settings.programs;
  const fs::path program =
      own_machine ? host.program : programs / target.preset / "bin" / "check_zoo";
  if (!is_there(program)) {
    return {{},
            why + ", and " + path_in_quotes(program) + " is not built (cmake --preset " +
                target.preset + " && cmake --build --preset " + target.preset + ")"};
  }
  Way way;
  way.command = target.emulator;
  way.command.push_back(program.string());
  return way;
}

std::string why_missing(const fs::path& place, const PlannedJob& job) {
  if (job.target == "c" && is_there(place.parent_path() / "model.c")) {
    return path_in_quotes(place) + " is not there: compile model.c with this machine's compiler";
  }
  const fs::path archive = place.parent_path() / (job.model + ".tar");
  if (job.form == "mlf" && is_there(archive)) {
    return path_in_quotes(place) + " is not there: scripts/link_mlf " + archive.string() +
           " --out " + place.string() + " links the archive";
  }
  return path_in_quotes(place) +
         " is not there: scripts/make_zoo or scripts/compile_model makes it";
}

class Planner {
 public:
  Planner(const CheckSettings& settings, const std::vector<ListedTarget>& targets,
          const CheckHost& host)
      : settings_(settings), targets_(targets), host_(host) {}

  Plan run() {
    choose_models();
    check_pictures();
    choose_targets();
    for (const std::string& model : models_) {
      for (const ListedTarget* target : chosen_) {
        for (const std::string& form : settings_.forms) add(model, *target, form);
      }
    }
    keep_shard();
    return std::move(plan_);
  }

 private:
  void choose_models() {
    models_ = golden_models(settings_.golden);
    if (settings_.models.empty()) return;
    for (const std::string& model : settings_.models) {
      // A network whose source is out of reach leaves nothing here: it is skipped and named.
      if (settings_.allow_skip) break;
      if (std::find(models_.begin(), models_.end(), model) == models_.end() &&
          !is_there(settings_.artifacts / model)) {
        throw Error(
            ErrorKind::kUsage,
            "--models has " + in_quotes(model) + ", which has neither golden cases nor artifacts",
            models_.empty() ? "" : "there are cases of " + comma_list(models_));
      }
    }
    models_ = settings_.models;
  }

  void check_pictures() const {
    std::set<std::string> known;
    for (const std::string& model : models_) {
      for (const GoldenFile& file : golden_files(settings_.golden, model)) {
        known.insert(file.picture);
      }
    }
    for (const std::string& picture : settings_.pictures) {
      if (known.contains(picture) || (known.empty() && settings_.allow_skip)) continue;
      throw Error(ErrorKind::kUsage,
                  "--pictures has " + in_quotes(picture) + ", of which there is no golden case",
                  "there are cases of " + comma_list(known));
    }
  }

  void choose_targets() {
    for (const std::string& name : settings_.targets) chosen_.push_back(&find_target(name));
    if (!chosen_.empty()) return;
    for (const ListedTarget& target : targets_) {
      const bool compiled =
          std::any_of(models_.begin(), models_.end(), [&](const std::string& model) {
            return is_there(settings_.artifacts / model / target.name);
          });
      if (compiled || settings_.all_targets) {
        chosen_.push_back(&target);
      } else {
        plan_.targets_left_out.push_back(target.name);
      }
    }
  }

  const ListedTarget& find_target(const std::string& name) const {
    std::vector<std::string> known;
    for (const ListedTarget& target : targets_) {
      if (target.name == name) return target;
      known.push_back(target.name);
    }
    throw Error(ErrorKind::kUsage,
                "--target has " + in_quotes(name) + ", which the list of targets does not have",
                "it has " + comma_list(known));
  }

  void add(const std::string& model, const ListedTarget& target, const std::string& form) {
    PlannedJob job;
    job.model = model;
    job.target = target.name;
    job.form = form;
    job.on_device = !target.device.empty();
    for (const GoldenFile& file : golden_files(settings_.golden, model)) {
      const std::vector<std::string>& wanted = settings_.pictures;
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), file.picture) != wanted.end()) {
        job.pictures.push_back(file.picture);
      }
    }
    if (job.pictures.empty() && !settings_.pictures.empty() && !settings_.allow_skip) return;

    const fs::path place = locate_form(settings_.artifacts, model, target.name, form).place;
    if (job.pictures.empty()) {
      job.skipped_because = "there is no golden case of it: scripts/make_golden makes them";
    } else if (!is_there(place)) {
      job.skipped_because = why_missing(place, job);
    } else {
      const Way& way = way_of(target);
      job.skipped_because = way.impossible_because;
      job.command = way.command;
    }
    plan_.jobs.push_back(std::move(job));
  }

  // Found once for each target: it may take a process that opens a GPU's driver.
  const Way& way_of(const ListedTarget& target) {
    const auto known = ways_.find(target.name);
    if (known != ways_.end()) return known->second;
    return ways_.emplace(target.name, find_way(target, settings_, host_)).first->second;
  }

  void keep_shard() {
    std::vector<PlannedJob> kept;
    for (std::size_t i = settings_.shard.index; i < plan_.jobs.size(); i += settings_.shard.count) {
      kept.push_back(std::move(plan_.jobs[i]));
    }
    plan_.jobs = std::move(kept);
  }

  const CheckSettings& settings_;
  const std::vector<ListedTarget>& targets_;
  const CheckHost& host_;
  std::vector<std::string> models_;
  std::vector<const ListedTarget*> chosen_;
  std::map<std::string, Way> ways_;
  Plan plan_;
};

}  // namespace

CheckHost CheckHost::current() {
  CheckHost host;
  // "armv7l hard-float" without what is said of the ABI.
  host.machine = target_name(Host::current().target);
  host.machine = host.machine.substr(0, host.machine.find(' '));
  host.cpu = this_cpu();
  host.program = this_program();
  const char* path = std::getenv("PATH");
  host.search_path = path == nullptr ? "/usr/bin:/bin" : path;
  return host;
}

Plan plan_checks(const CheckSettings& settings, const std::vector<ListedTarget>& targets,
                 const CheckHost& host) {
  return Planner(settings, targets, host).run();
}

}  // namespace run_model
