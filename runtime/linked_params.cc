#include "runtime/linked_params.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include <run_model/tensor.h>
#include "base/text.h"
#include "runtime/last_error.h"

namespace run_model {
namespace {

const void* look_up(PackedFunction function, const Module& module, std::size_t storage) {
  PackedValue argument{};
  argument.v_int64 = static_cast<std::int64_t>(storage);
  int type = kTypeInt;
  PackedValue result{};
  int result_type = kTypeNull;
  clear_last_packed_error();
  if (function(&argument, &type, 1, &result, &result_type, nullptr) != 0) {
    throw Error(ErrorKind::kModel,
                "library " + path_in_quotes(module.path()) +
                    " failed to look up a linked parameter: " + last_packed_error());
  }
  // Storage that holds no parameter gives null.
  return result_type == kTypeOpaqueHandle ? result.v_handle : nullptr;
}

}  // namespace

void bind_linked_params(const std::shared_ptr<Module>& module, const Graph& graph,
                        ParamBinding& binding) {
  const PackedFunction function = module->find(kLookupLinkedParam);
  if (function == nullptr) return;
  for (const std::size_t node : graph.inputs) {
    const std::size_t entry = graph.nodes[node].first_output;
    const auto is_bound = [&](const BoundParam& param) { return param.entry == entry; };
    if (std::any_of(binding.params.begin(), binding.params.end(), is_bound)) continue;
    const void* data = look_up(function, *module, graph.entries[entry].storage);
    if (data == nullptr) continue;
    const std::size_t bytes = graph.entries[entry].bytes;
    if (is_aligned(data)) {
      binding.params.push_back({entry, data, module, false});
      binding.bytes_in_place += bytes;
      continue;
    }
    auto copy = std::make_shared<Tensor>(
        Tensor::empty(graph.entries[entry].shape, graph.entries[entry].dtype));
    std::memcpy(copy->data(), data, bytes);
    binding.params.push_back({entry, copy->data(), copy, true});
    binding.bytes_copied += bytes;
  }
}

}  // namespace run_model
