// An artifact that is ready to run.
#pragma once

#include "artifacts/package.h"
#include "run_model/report.h"
#include "runtime/graph_executor.h"

namespace run_model {

struct LoadedPackage {
  RunReport report;  // timing.load is filled in
  GraphExecutor executor;
};

// Finds, checks and loads an artifact, to run on `threads` threads (0: as many as suit this machine).
// Throws as open_package and GraphExecutor do, and Error(kMismatch) when the metadata describes other
// inputs or outputs than the graph has.
LoadedPackage load_package(const PackageRequest& request, int threads);

// Writes all outputs to an .npz file as output_0, output_1 … Throws Error(kFile).
void save_outputs(const GraphExecutor& executor, const std::filesystem::path& path);

}  // namespace run_model
