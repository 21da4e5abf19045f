// Finds the first node of a compiled graph whose result departs from a reference.
//
// A compiled graph is not the ONNX graph: nodes are fused, renamed, folded and laid out in another
// way. So nodes are matched by their values. A node is right when its output is some tensor of the
// reference within a tolerance, as it is, from NCHWc (five dimensions) put back to NCHW, or from
// NHWC to NCHW. A node without such a tensor (padding, Winograd's transforms, parts of a fused
// pattern) is excused when a node that reads it is right or excused. One whose output is a tensor
// of the reference but for a factor for each channel is excused, too, since TVM moves the factors
// of batch normalisation from one convolution into another. The first node in running order that is
// wrong and not excused is where the graph departs; nodes before it that are not right themselves
// and lead to it over such nodes only may be the cause as well, and are named with it.
//
// Limits: a wrong node whose output equals another tensor of the reference by chance, as one that
// is 0 everywhere, passes for right; what no element of an output shows cannot be seen; only
// float32 outputs are looked at.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/npz.h>

namespace run_model {

// How a node's output compares with the tensor of the reference that is closest to it.
struct ReferenceMatch {
  std::string tensor;               // its name; empty where none has as many elements
  std::vector<std::int64_t> shape;  // the reference's
  std::string layout;               // how the output was read: "as it is", "NCHWc as NCHW" …
  std::size_t wrong = 0;            // elements that differ by more than the strictest tolerance
  std::size_t nonzero = 0;          // elements of the reference that are not 0
  std::size_t nonzero_right = 0;    // those of them that are right
  bool scaled = false;              // right, but for a factor for each channel
  double scale = 0.0;               // the reference's largest magnitude
  double largest_error = 0.0;
  std::size_t first_wrong = 0;  // index in the reference's layout
  double expected = 0.0;        // there
  double actual = 0.0;

  // The largest error as a share of the reference's largest magnitude.
  double relative_error() const;
};

// The reference's tensors, found by their number of elements (an output may have a few more
// channels).
class ReferenceTensors {
 public:
  // Only float32 tensors count.
  explicit ReferenceTensors(std::vector<NamedTensor> tensors);

  // The closest one: the one that it is but for a factor for each channel, or else the one with
  // fewest wrong elements.
  ReferenceMatch closest(const Tensor& output) const;

  std::size_t size() const { return tensors_.size(); }

 private:
  struct Reference {
    std::string name;
    Tensor tensor;
    double scale = 0.0;
  };
  std::vector<Reference> tensors_;
};

struct Departure {
  std::size_t node = 0;    // in running order
  double tolerance = 0.0;  // share of a tensor's largest magnitude that its error is beyond
  std::vector<std::size_t> suspects;  // nodes before it that may be the cause instead
};

// `matches` has one for each node of `nodes`. Nothing where no node's error stands out from what
// float32 arithmetic in another order gives.
std::optional<Departure> find_departure(const std::vector<NodeInfo>& nodes,
                                        const std::vector<ReferenceMatch>& matches);

// Where errors grow most, for a result that is wrong by so little that no node stands out.
struct ErrorGrowth {
  std::size_t node = 0;
  double before = 0.0;  // the largest relative error of any node before it
  double after = 0.0;   // its own
};
std::optional<ErrorGrowth> largest_growth(const std::vector<ReferenceMatch>& matches);

// Runs the graph node by node on the inputs that are set. Throws as GraphExecutor::run does.
std::vector<ReferenceMatch> match_nodes(DebugExecutor& executor,
                                        const ReferenceTensors& references);

}  // namespace run_model
