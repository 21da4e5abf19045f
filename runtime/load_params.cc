#include <run_model/load_params.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/param_binding.h"
#include "runtime/params_file.h"

namespace run_model {

void load_params(GraphExecutor& executor, std::span<const std::byte> bytes,
                 const std::string& source) {
  std::vector<std::pair<std::size_t, Param>> known;
  for (Param& param : parse_params(bytes, source)) {
    const std::optional<std::size_t> index = executor.argument_index(param.name);
    if (!index) continue;
    const TensorInfo& expected = executor.arguments()[*index];
    check_form(param, expected.shape, expected.dtype, source);
    known.emplace_back(*index, std::move(param));
  }
  for (const auto& [index, param] : known) {
    const Tensor target = executor.argument(index);
    if (!param.data.empty()) std::memcpy(target.data(), param.data.data(), param.data.size());
  }
}

}  // namespace run_model
