#include "run_model/run_model/profile/profile.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <unordered_set>

#include <run_model/error.h>
#include <run_model/graph.h>
#include "base/json.h"
#include "run_model/run_model/profile/live_memory.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/stopwatch.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

// The most samples that are kept: 64 MB of them.
constexpr std::size_t kMaxSamples = std::size_t{8} << 20;

// One run node by node.
struct NodeRun {
  struct Interval {
    Clock::time_point start, end;
  };
  std::vector<Interval> nodes;
  std::vector<double> device_milliseconds;  // of nodes on devices; negative for others

  // What a node took: on a device by that device's clock.
  double milliseconds_of(std::size_t node) const {
    return device_milliseconds[node] >= 0 ? device_milliseconds[node]
                                          : milliseconds(nodes[node].end - nodes[node].start);
  }
  double total() const {
    return nodes.empty() ? 0.0 : milliseconds(nodes.back().end - nodes.front().start);
  }
};

// The names in a JSON list; none where the text is no such list: what a report says besides is no
// reason to refuse an artifact.
std::vector<std::string> listed_names(const std::string& text) {
  if (text.empty()) return {};
  try {
    return strings_field(JsonDocument(text, "onnx_nodes").root());
  } catch (const Error&) {
    return {};
  }
}

void run_nodes(DebugExecutor& executor, NodeRun& run) {
  for (std::size_t i = 0; i < run.nodes.size(); ++i) {
    run.nodes[i].start = Clock::now();
    const std::optional<double> device = executor.run_node_timed(i);
    run.nodes[i].end = Clock::now();
    run.device_milliseconds[i] = device ? *device * 1e3 : -1;
  }
}

double run_plainly(DebugExecutor& executor) {
  const Clock::time_point start = Clock::now();
  executor.run();
  return milliseconds(Clock::now() - start);
}

struct Samples {
  std::vector<std::vector<double>> nodes;
  std::vector<double> plain, by_node, difference;
  NodeRun fastest;
};

Samples collect(DebugExecutor& executor, const ProfileRuns& wanted, std::size_t& warm_up_runs) {
  const std::size_t count = executor.nodes().size();
  NodeRun run{std::vector<NodeRun::Interval>(count), std::vector<double>(count, -1)};
  const Clock::time_point begin = Clock::now();
  const auto late = [&](double limit) {
    return limit > 0.0 && milliseconds(Clock::now() - begin) >= 1000.0 * limit;
  };
  // At most half of the time for warming up.
  for (warm_up_runs = 0; warm_up_runs < wanted.warm_up; ++warm_up_runs) {
    if (late(wanted.max_seconds / 2)) break;
    run_plainly(executor);
    run_nodes(executor, run);
  }

  Samples samples;
  samples.nodes.resize(count);
  const std::size_t limit = std::max<std::size_t>(
      1, std::min(wanted.runs, kMaxSamples / std::max<std::size_t>(1, count)));
  for (std::size_t i = 0; i < limit; ++i) {
    if (i > 0 && late(wanted.max_seconds)) break;
    // Each kind comes first in turns, so that neither always follows the other.
    double plain = i % 2 == 0 ? run_plainly(executor) : 0.0;
    run_nodes(executor, run);
    if (i % 2 != 0) plain = run_plainly(executor);
    const double total = run.total();
    samples.plain.push_back(plain);
    samples.by_node.push_back(total);
    samples.difference.push_back(total - plain);
    for (std::size_t node = 0; node < count; ++node) {
      samples.nodes[node].push_back(run.milliseconds_of(node));
    }
    if (i == 0 || total < samples.fastest.total()) samples.fastest = run;
  }
  return samples;
}

// What each function takes from the calling thread's workspace, in a run of its own: the blocks
// that it keeps for later are given back before each node.
std::vector<std::size_t> workspaces(DebugExecutor& executor) {
  Workspace& workspace = Workspace::of_this_thread();
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < executor.nodes().size(); ++i) {
    workspace.release_unused();
    const std::size_t before = workspace.held_bytes();
    executor.run_node(i);
    bytes.push_back(workspace.held_bytes() - before);
  }
  return bytes;
}

std::vector<bool> parameters(const DebugExecutor& executor) {
  std::unordered_set<std::string_view> inputs;
  for (const TensorInfo& input : executor.inputs()) inputs.insert(input.name);
  std::vector<bool> is_parameter;
  for (const GraphNode& node : executor.graph().nodes) {
    is_parameter.push_back(node.kind == NodeKind::kInput && !inputs.contains(node.name));
  }
  return is_parameter;
}

std::vector<ProfiledNode> describe_nodes(const DebugExecutor& executor) {
  std::vector<bool> joined;
  for (const NodeInfo& node : executor.nodes()) joined.push_back(node.joined);
  const std::vector<NodeMemory> memory =
      node_memory(executor.graph(), parameters(executor), joined);
  std::vector<ProfiledNode> nodes;
  for (const GraphNode& in_graph : executor.graph().nodes) {
    if (in_graph.kind == NodeKind::kInput) continue;
    const std::size_t i = nodes.size();
    ProfiledNode node;
    node.info = executor.nodes()[i];
    const FunctionName name = parse_function_name(node.info.function);
    const Work work = work_of(name, node.info, memory[i].is_parameter);
    node.family = work.family;
    node.operations = stated_operations(in_graph.multiply_adds);
    if (!node.operations) node.operations = work.operations;
    node.kernel = in_graph.kernel;
    node.onnx_nodes = listed_names(in_graph.onnx_nodes);
    node.reads_partially = reads_partially(name);
    if (memory[i].is_view) {
      node.family = OperatorFamily::kView;
    } else if (node.info.function == "__copy" || node.info.function == "__nop") {
      node.family = OperatorFamily::kCopy;
    }
    node.bytes_read = memory[i].read;
    node.bytes_written = memory[i].written;
    node.parameter_bytes = memory[i].parameters;
    node.live_bytes = memory[i].live;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void add_times(Profile& profile, const Samples& samples) {
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    ProfiledNode& node = profile.nodes[i];
    node.time = describe(samples.nodes[i]);
    profile.sum_of_nodes += node.time.median;
    const NodeRun::Interval& interval = samples.fastest.nodes[i];
    node.start = milliseconds(interval.start - samples.fastest.nodes.front().start);
    node.end = milliseconds(interval.end - samples.fastest.nodes.front().start);
  }
  profile.by_time.resize(profile.nodes.size());
  std::iota(profile.by_time.begin(), profile.by_time.end(), std::size_t{0});
  std::sort(profile.by_time.begin(), profile.by_time.end(), [&](auto a, auto b) {
    const double time_a = profile.nodes[a].time.median, time_b = profile.nodes[b].time.median;
    return time_a != time_b ? time_a > time_b : a < b;
  });
  double cumulative = 0.0;
  for (const std::size_t i : profile.by_time) {
    ProfiledNode& node = profile.nodes[i];
    cumulative += node.time.median;
    if (profile.sum_of_nodes <= 0.0) continue;
    node.share = node.time.median / profile.sum_of_nodes;
    node.cumulative_share = cumulative / profile.sum_of_nodes;
  }
  profile.runs = samples.plain.size();
  profile.plain_run = describe(samples.plain);
  profile.node_run = describe(samples.by_node);
  profile.overhead = describe(samples.difference).median;
}

std::vector<ProfiledFamily> sum_over_families(const Profile& profile) {
  std::array<ProfiledFamily, kOperatorFamilies> sums{};
  for (const ProfiledNode& node : profile.nodes) {
    ProfiledFamily& sum = sums[static_cast<std::size_t>(node.family)];
    sum.family = node.family;
    ++sum.nodes;
    sum.time += node.time.median;
    sum.share += node.share;
    sum.bytes += node.bytes_read + node.bytes_written;
    if (!node.operations) continue;
    ++sum.counted_nodes;
    sum.operations += node.operations->operations;
    sum.time_of_operations += node.time.median;
  }
  std::vector<ProfiledFamily> families;
  for (const ProfiledFamily& sum : sums) {
    if (sum.nodes == 0) continue;
    const auto place = std::find_if(families.begin(), families.end(),
                                    [&](const auto& other) { return other.time < sum.time; });
    families.insert(place, sum);
  }
  return families;
}

ProfileMemory sum_memory(const DebugExecutor& executor, const std::vector<ProfiledNode>& nodes) {
  ProfileMemory memory;
  memory.executor = executor.memory();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    memory.workspace_bytes = std::max(memory.workspace_bytes, nodes[i].workspace_bytes);
    if (nodes[i].live_bytes <= memory.peak_live_bytes) continue;
    memory.peak_live_bytes = nodes[i].live_bytes;
    memory.peak_node = i;
  }
  return memory;
}

}  // namespace

std::optional<double> ProfiledNode::gflops() const {
  if (!operations || time.median <= 0.0) return std::nullopt;
  return static_cast<double>(operations->operations) / (1e6 * time.median);
}

std::optional<double> ProfiledNode::gigabytes_per_second() const {
  const std::size_t bytes = bytes_read + bytes_written;
  if (reads_partially || bytes == 0 || time.median <= 0.0) return std::nullopt;
  return static_cast<double>(bytes) / (1e6 * time.median);
}

std::optional<double> ProfiledFamily::gflops() const {
  if (counted_nodes == 0 || time_of_operations <= 0.0) return std::nullopt;
  return static_cast<double>(operations) / (1e6 * time_of_operations);
}

ProfileRuns profile_runs(const MeasureSettings& settings) {
  constexpr double kUnaskedSeconds = 10.0;
  ProfileRuns runs{settings.warm_up_runs, settings.repeat, settings.max_seconds};
  if (!flag_is_set("repeat") && runs.max_seconds <= 0.0) runs.max_seconds = kUnaskedSeconds;
  return runs;
}

Profile profile_model(DebugExecutor& executor, const ProfileRuns& runs) {
  Profile profile;
  profile.functions = executor.graph().functions;
  profile.nodes = describe_nodes(executor);
  const Samples samples = collect(executor, runs, profile.warm_up_runs);
  add_times(profile, samples);
  profile.families = sum_over_families(profile);
  const std::vector<std::size_t> workspace_bytes = workspaces(executor);
  for (std::size_t i = 0; i < profile.nodes.size(); ++i) {
    profile.nodes[i].workspace_bytes = workspace_bytes[i];
  }
  profile.memory = sum_memory(executor, profile.nodes);
  executor.run();
  return profile;
}

}  // namespace run_model
