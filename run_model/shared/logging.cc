#include "run_model/shared/logging.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include "run_model/shared/arguments.h"

namespace run_model {

void prepare_logging() {
  gflags::SetCommandLineOptionWithMode("logtostderr", "true", gflags::SET_FLAGS_DEFAULT);
  gflags::SetCommandLineOptionWithMode("minloglevel", "1", gflags::SET_FLAGS_DEFAULT);
}

void start_logging(const char* program_name) {
  const bool asked = FLAGS_v > 0 || flag_is_set("vmodule") || flag_is_set("logtostderr");
  if (asked && !flag_is_set("minloglevel")) FLAGS_minloglevel = google::INFO;
  google::InitGoogleLogging(program_name);
}

}  // namespace run_model
