#include "runtime/loading/param_binding.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include <run_model/tensor.h>
#include "base/text.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

constexpr const char* kSameModelHint =
    "check that the graph and the parameters come from the same compilation";

std::size_t round_up(std::size_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

// Copies a tensor in steps, giving the source's pages back after each.
void copy_and_release(char* target, const Param& param, const MappedFile* file) {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  for (std::size_t done = 0; done < param.data.size(); done += kStep) {
    std::size_t bytes = std::min(kStep, param.data.size() - done);
    const std::byte* source = param.data.data() + done;
    std::memcpy(target + done, source, bytes);
    if (file == nullptr) continue;
    file->release(static_cast<std::size_t>(source - file->bytes().data()), bytes);
  }
}

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

void check_form(const Param& param, const std::vector<std::int64_t>& shape, DLDataType dtype,
                const std::string& source) {
  if (param.shape == shape && same_dtype(param.dtype, dtype)) return;
  throw Error(ErrorKind::kMismatch,
              source + " has parameter " + in_quotes(param.name) + " as " +
                  tensor_form_name(param.dtype, param.shape) + ", the graph expects " +
                  tensor_form_name(dtype, shape),
              kSameModelHint);
}

ParamBinding bind_params(const Graph& graph, const std::vector<Param>& params,
                         const std::shared_ptr<const MappedFile>& file, const std::string& source) {
  std::unordered_map<std::string_view, std::size_t> entry_of;
  for (std::size_t node : graph.inputs) {
    entry_of.emplace(graph.nodes[node].name, graph.nodes[node].first_output);
  }

  ParamBinding binding;
  binding.params.reserve(params.size());
  for (const Param& param : params) {
    auto found = entry_of.find(param.name);
    if (found == entry_of.end()) {
      throw Error(
          ErrorKind::kMismatch,
          source + " has a parameter " + in_quotes(param.name) + ", which the graph does not use",
          kSameModelHint);
    }
    const GraphEntry& entry = graph.entries[found->second];
    check_form(param, entry.shape, entry.dtype, source);
    // Of what is copied to a device nothing else reads the bytes.
    bool in_place = entry.device != kDLCPU || is_aligned(param.data.data());
    (in_place ? binding.bytes_in_place : binding.bytes_copied) += param.data.size();
    binding.params.push_back({found->second, in_place ? param.data.data() : nullptr, file, false});
  }
  if (binding.bytes_copied == 0) return binding;

  std::size_t total = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (binding.params[i].data == nullptr) total += round_up(params[i].data.size());
  }
  Tensor storage = Tensor::empty({static_cast<std::int64_t>(total)}, {kDLUInt, 8, 1});
  auto storage_owner = std::make_shared<Tensor>(storage);
  char* next = static_cast<char*>(storage.data());
  for (std::size_t i = 0; i < params.size(); ++i) {
    BoundParam& bound = binding.params[i];
    if (bound.data != nullptr) continue;
    copy_and_release(next, params[i], file.get());
    bound.data = next;
    bound.owner = storage_owner;
    bound.writable = true;
    next += round_up(params[i].data.size());
  }
  return binding;
}

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
