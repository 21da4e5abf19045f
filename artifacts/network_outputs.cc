#include <run_model/network_outputs.h>

namespace run_model {

std::vector<NetworkOutput> network_outputs(const GraphExecutor& executor,
                                           const Metadata* metadata) {
  std::vector<NetworkOutput> outputs;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    NetworkOutput output;
    output.alias = executor.outputs()[i].name;
    output.tensor = executor.output(i);
    if (metadata != nullptr && i < metadata->outputs.size()) {
      const MetadataTensor& described = metadata->outputs[i];
      output.name = described.name;
      output.scale = described.scale;
      output.zero_point = described.zero_point;
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace run_model
