// What a run of each node of a graph took, in the form that TVM's Report.from_json reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace run_model::rpc {

struct ProfiledCall {
  std::string function;
  double microseconds = 0;
  std::string shapes;  // of inputs and outputs: "float32[1, 8], float32[4]"
  std::vector<std::pair<std::string, std::string>> labels;  // GraphNode::labels
};

struct ProfileReport {
  std::vector<ProfiledCall> calls;
  double total_microseconds = 0;
  int threads = 0;
};

// Format read from TVM's profiling.cc (v0.18.0), ReportNode::AsJSON and Report::FromJSON: "calls",
// a list of metrics by name; "device_metrics", those of each device; "configuration". A metric is
// an object with one member, which says what it is: "microseconds", "percent", "count" or "string".
std::string to_json(const ProfileReport& report);

}  // namespace run_model::rpc
