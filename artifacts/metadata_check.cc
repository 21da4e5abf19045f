#include <algorithm>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/package.h>
#include "base/text.h"

namespace run_model {
namespace {

// -1 stands for a dimension that may be any number.
bool same_shape(const TensorInfo& info, const std::vector<std::int64_t>& described) {
  if (info.symbols.empty()) return info.shape == described;
  bool same = info.shape.size() == described.size();
  for (std::size_t i = 0; same && i < described.size(); ++i) {
    same = info.symbols[i].empty() ? info.shape[i] == described[i] : described[i] == -1;
  }
  return same;
}

// The outputs of a model whose inputs are not fixed have the shapes that the inputs give them.
bool fits_description(const TensorInfo& info, const std::vector<std::int64_t>& described) {
  bool fits = info.shape.size() == described.size();
  for (std::size_t i = 0; fits && i < described.size(); ++i) {
    fits = described[i] == -1 || info.shape[i] == described[i];
  }
  return fits;
}

}  // namespace

void check_metadata(const Package& package, const GraphExecutor& executor) {
  if (!package.metadata) return;
  const std::string file = path_in_quotes(package.metadata_path);
  for (const MetadataTensor& described : package.metadata->inputs) {
    const auto& inputs = executor.inputs();
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const TensorInfo& info) {
      return info.name == described.name;
    });
    if (input != inputs.end() && same_shape(*input, described.shape) &&
        same_dtype(input->dtype, described.dtype)) {
      continue;
    }
    throw Error(ErrorKind::kMismatch,
                file + " describes the input " + in_quotes(described.name) + " as " +
                    tensor_form_name(described.dtype, described.shape) + ", but the graph has " +
                    (input == inputs.end() ? "no such input"
                                           : tensor_form_name(input->dtype, input->shape)),
                "the metadata belongs to another artifact");
  }
  if (executor.outputs().empty()) return;  // only inputs' shapes that are still to come tell them
  const std::vector<MetadataTensor>& outputs = package.metadata->outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool there = i < executor.outputs().size();
    if (there && fits_description(executor.outputs()[i], outputs[i].shape) &&
        same_dtype(outputs[i].dtype, executor.outputs()[i].dtype)) {
      continue;
    }
    throw Error(
        ErrorKind::kMismatch,
        file + " describes output " + std::to_string(i) + " as " +
            tensor_form_name(outputs[i].dtype, outputs[i].shape) + ", but the graph has " +
            (there ? tensor_form_name(executor.outputs()[i].dtype, executor.outputs()[i].shape)
                   : "no such output"),
        "the metadata belongs to another artifact");
  }
}

}  // namespace run_model
