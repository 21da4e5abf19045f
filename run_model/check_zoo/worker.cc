#include "run_model/check_zoo/worker.h"

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <new>

#include <run_model/error.h>
#include <run_model/labels.h>
#include "artifacts/checksum.h"
#include "base/text.h"
#include "run_model/check_zoo/judge.h"
#include "run_model/check_zoo/locate.h"
#include "run_model/check_zoo/plan.h"
#include "run_model/check_zoo/result.h"
#include "run_model/shared/program.h"

namespace run_model {
namespace {

void say(std::initializer_list<Json::Member> event) {
  write_standard_output(Json::object(event).compact() + "\n");
}

bool wants_location(const CheckSettings& settings, const WorkerTask& task,
                    const CaseResult& result) {
  if (!settings.locate || result.status == CaseStatus::kSkipped) return false;
  return result.status == CaseStatus::kFailed || task.pictures.size() == 1;
}

void check_pictures(const CheckSettings& settings, const WorkerTask& task) {
  const ToleranceTable tolerances = read_tolerances(settings.tolerances);
  JudgeContext context{task.model, task.target, settings.images, &tolerances, {}};
  if (!settings.labels.empty()) context.labels = read_labels(settings.labels);
  LoadedPackage loaded =
      load_package(locate_form(settings.artifacts, task.model, task.target, task.form).request,
                   {.threads = settings.threads, .cluster = ClusterChoice::kAll});
  const std::filesystem::path& library = loaded.package.files.library;
  say({{"event", "loaded"},
       {"library", shown_path(library)},
       {"checksum", hex(file_xxh3_64(library))},
       {"load", loaded.load_milliseconds}});

  const std::vector<GoldenFile> files = golden_files(settings.golden, task.model);
  for (const std::string& picture : task.pictures) {
    const GoldenFile* file = nullptr;
    for (const GoldenFile& known : files) {
      if (known.picture == picture) file = &known;
    }
    if (file == nullptr) {
      throw Error(ErrorKind::kFile, "the golden case " + picture + " is gone");
    }
    say({{"event", "start"}, {"picture", picture}});
    const CaseResult result = judge_case(loaded, file->path, picture, context);
    say({{"event", "result"}, {"case", case_json(result)}});
    if (!wants_location(settings, task, result)) continue;
    say({{"event", "location"},
         {"picture", picture},
         {"lines", locate_case(loaded.executor, file->path, settings)}});
  }
}

}  // namespace

std::vector<std::string> worker_arguments(const CheckSettings& settings, const WorkerTask& task) {
  std::vector<std::string> arguments = file_flags(settings);
  arguments.push_back("--models=" + task.model);
  arguments.push_back("--target=" + task.target);
  arguments.push_back("--forms=" + task.form);
  arguments.push_back("--pictures=" + list_of(task.pictures, ","));
  if (settings.locate) {
    arguments.push_back("--locate");
    arguments.push_back("--intermediates=" + settings.intermediates.string());
  }
  arguments.push_back("--worker");
  return arguments;
}

WorkerTask worker_task(const CheckSettings& settings) {
  if (settings.models.size() != 1 || settings.targets.size() != 1 || settings.forms.size() != 1) {
    throw Error(ErrorKind::kUsage, "--worker takes one model, one target and one form",
                "leave --worker out: check_zoo starts its workers itself");
  }
  return {settings.models[0], settings.targets[0], settings.forms[0], settings.pictures};
}

int run_worker(const CheckSettings& settings, const WorkerTask& task) {
  std::string failure;
  try {
    check_pictures(settings, task);
  } catch (const std::bad_alloc&) {
    failure = "there is not enough memory";
  } catch (const std::exception& error) {
    failure = error.what();
  }
  try {
    if (!failure.empty()) say({{"event", "failed"}, {"message", failure}});
    say({{"event", "end"}});
  } catch (const Error& error) {
    std::fprintf(stderr, "check_zoo: %s\n", error.what());
    return exit_code(error.kind());
  }
  return 0;
}

}  // namespace run_model
