// Where a model's time and memory go, node by node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include "run_model/run_model/measure/statistics.h"
#include "run_model/run_model/profile/operation_count.h"
#include "run_model/run_model/profile/operator_family.h"
#include "run_model/run_model/setting_groups.h"

namespace run_model {

// Times are in milliseconds, sizes in bytes. What is compared and summed are medians: on a machine
// that does something else too, a few runs that were interrupted make most of a mean.
struct ProfiledNode {
  NodeInfo info;
  OperatorFamily family = OperatorFamily::kUnknown;
  Statistics time;                           // of all runs; one call a run
  double share = 0.0;                        // of the sum over the nodes' median times
  double cumulative_share = 0.0;             // of this node and all that take longer
  std::optional<OperationCount> operations;  // nothing where they cannot be told
  std::string kernel;  // which of this project's kernels, as GraphNode::kernel; else empty
  std::vector<std::string> onnx_nodes;  // what it computes, by the names in the network's file

  // Sizes of the distinct tensors that the function reads and writes: what it has to move at least,
  // unless it reads only part of an input. What caches keep from going to memory is not known.
  std::size_t bytes_read = 0;
  std::size_t bytes_written = 0;
  std::size_t parameter_bytes = 0;  // part of bytes_read
  bool reads_partially = false;

  std::size_t live_bytes = 0;  // inputs, intermediates and outputs that are needed at this node
  std::size_t workspace_bytes = 0;  // that the function takes on the calling thread

  // In the run that took the shortest time, since that run's start.
  double start = 0.0;
  double end = 0.0;

  // Thousand million a second at the median time; nothing where it is not known.
  std::optional<double> gflops() const;
  std::optional<double> gigabytes_per_second() const;
};

struct ProfiledFamily {
  OperatorFamily family = OperatorFamily::kUnknown;
  std::size_t nodes = 0;
  double time = 0.0;  // sum of median times
  double share = 0.0;
  std::size_t counted_nodes = 0;    // those whose operations are known
  std::uint64_t operations = 0;     // of the counted nodes
  double time_of_operations = 0.0;  // of the counted nodes
  std::size_t bytes = 0;            // read and written

  // Of the counted nodes at their median times.
  std::optional<double> gflops() const;
};

struct ProfileMemory {
  MemoryAccount executor;
  std::size_t peak_live_bytes = 0;  // the largest live_bytes
  std::size_t peak_node = 0;        // the first node that has it
  std::size_t workspace_bytes = 0;  // the largest workspace_bytes
};

struct Profile {
  // For the reports; profile_model leaves them empty.
  std::string model;
  std::string target;
  std::string tvm_version;
  int threads = 0;

  std::vector<std::string> functions;    // Graph::functions
  std::vector<ProfiledNode> nodes;       // in running order
  std::vector<std::size_t> by_time;      // indices into nodes, slowest (by median) first
  std::vector<ProfiledFamily> families;  // those that occur, slowest first
  ProfileMemory memory;

  std::size_t runs = 0;
  std::size_t warm_up_runs = 0;
  Statistics plain_run;     // GraphExecutor::run(), taken in turns with the runs node by node
  Statistics node_run;      // from the first node's start to the last node's end
  double sum_of_nodes = 0;  // of the median times
  // Median of the differences between neighbours: what running node by node costs.
  double overhead = 0.0;
};

// How often to run. A profile runs each time once plainly and once node by node.
struct ProfileRuns {
  std::size_t warm_up = 3;
  std::size_t runs = 100;
  double max_seconds = 0.0;  // stop before `runs` after this time; 0: never
};

// --warmup, --repeat and --max-seconds; without --repeat at most ten seconds.
ProfileRuns profile_runs(const MeasureSettings& settings);

// Runs the model on the inputs that are set. Throws what GraphExecutor::run throws. Afterwards the
// executor's outputs are those of a run.
Profile profile_model(DebugExecutor& executor, const ProfileRuns& runs);

}  // namespace run_model
