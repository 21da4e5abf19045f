#include "run_model/run_model/profile/operator_family.h"

#include <algorithm>

namespace run_model {
namespace {

// What decides a function's family, and how strongly: the compiler fuses at most one operator above
// kRearrange into a function, the rest goes along with it.
enum class Role {
  kReshape,  // changes nothing but the shape
  kElementwise,
  kLayoutTransform,
  kRearrange,
  kMain,
};

struct Group {
  OperatorFamily family;
  Role role;
  const char* operators;  // TVM's operators of 0.7 to 0.19 with _ for ., separated by spaces
};

constexpr Group kFamilies[] = {
    {OperatorFamily::kConv2d, Role::kMain,
     "nn_conv2d nn_contrib_conv2d_NCHWc nn_contrib_conv2d_winograd_without_weight_transform "
     "nn_contrib_conv2d_gemm_without_weight_transform qnn_conv2d"},
    {OperatorFamily::kConv2dDepthwise, Role::kMain, "nn_contrib_depthwise_conv2d_NCHWc"},
    {OperatorFamily::kConv2dTranspose, Role::kMain, "nn_conv2d_transpose qnn_conv2d_transpose"},
    {OperatorFamily::kConvOther, Role::kMain,
     "nn_conv1d nn_conv3d nn_conv1d_transpose nn_conv3d_transpose nn_deformable_conv2d "
     "nn_bitserial_conv2d nn_sparse_conv2d nn_contrib_conv3d_winograd_without_weight_transform "
     "nn_correlation nn_conv2d_backward_weight image_dilation2d"},
    {OperatorFamily::kDense, Role::kMain,
     "nn_dense nn_contrib_dense_pack nn_matmul nn_sparse_dense nn_bitserial_dense qnn_dense "
     "qnn_contrib_dense_pack nn_internal_sparse_dense_padded"},
    {OperatorFamily::kBatchMatmul, Role::kMain, "nn_batch_matmul qnn_batch_matmul einsum"},
    {OperatorFamily::kPool, Role::kMain,
     "nn_max_pool1d nn_max_pool2d nn_max_pool3d nn_avg_pool1d nn_avg_pool2d nn_avg_pool3d "
     "nn_global_avg_pool2d nn_global_max_pool2d nn_adaptive_avg_pool1d nn_adaptive_avg_pool2d "
     "nn_adaptive_avg_pool3d nn_adaptive_max_pool1d nn_adaptive_max_pool2d nn_adaptive_max_pool3d "
     "qnn_avg_pool2d contrib_adaptive_avg_pool2d contrib_adaptive_max_pool2d"},
    {OperatorFamily::kSoftmax, Role::kMain,
     "nn_softmax nn_log_softmax nn_fast_softmax qnn_softmax"},
    {OperatorFamily::kNormalize, Role::kMain,
     "nn_batch_norm nn_layer_norm nn_instance_norm nn_group_norm nn_lrn nn_l2_normalize"},
    {OperatorFamily::kReduce, Role::kMain,
     "sum mean max min prod all any variance argmax argmin argsort sort topk cumsum cumprod unique "
     "vision_non_max_suppression vision_get_valid_counts"},
    {OperatorFamily::kResize, Role::kMain,
     "image_resize image_resize1d image_resize2d image_resize3d image_crop_and_resize "
     "nn_upsampling "
     "nn_upsampling3d image_grid_sample"},
    {OperatorFamily::kRearrange, Role::kRearrange,
     "concatenate split stack transpose strided_slice strided_set slice_like take gather gather_nd "
     "tile repeat reverse reverse_sequence nn_pad nn_mirror_pad nn_depth_to_space "
     "nn_space_to_depth "
     "nn_batch_to_space_nd nn_space_to_batch_nd adv_index scatter scatter_nd scatter_elements "
     "scatter_add one_hot nn_dilate matrix_set_diag meshgrid trilu sliding_window "
     "sequence_mask qnn_concatenate"},
    {OperatorFamily::kLayoutTransform, Role::kLayoutTransform,
     "layout_transform auto_scheduler_layout_transform meta_schedule_layout_transform"},
    {OperatorFamily::kElementwise, Role::kElementwise,
     "add subtract multiply divide power mod floor_divide floor_mod trunc_divide trunc_mod maximum "
     "minimum nn_bias_add nn_relu nn_leaky_relu nn_prelu clip sigmoid tanh exp log log2 log10 sqrt "
     "rsqrt erf abs negative sign ceil floor round trunc sin cos tan sinh cosh asin acos atan "
     "asinh "
     "acosh atanh fast_exp fast_tanh fast_erf cast cast_like where equal not_equal less less_equal "
     "greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
     "bitwise_xor bitwise_not left_shift right_shift isnan isinf isfinite zeros ones full "
     "zeros_like "
     "ones_like full_like arange fixed_point_multiply fixed_point_multiply_per_axis nn_dropout "
     "qnn_quantize qnn_dequantize qnn_requantize qnn_add qnn_mul qnn_subtract qnn_leaky_relu"},
    {OperatorFamily::kCopy, Role::kReshape,
     "reshape squeeze expand_dims nn_batch_flatten copy broadcast_to broadcast_to_like "
     "reshape_like "
     "contrib_reverse_reshape reinterpret"},
};

// Operators that are layers of kernels/: named after the kernel, not after what TVM calls the work.
constexpr std::string_view kOwnPrefix = "run_model_";

struct OwnKernels {
  std::string_view part;  // of the kernel's name
  OperatorFamily family;
};

// The first one that a name has decides: "run_model_conv2d_expand_depthwise_project" computes three
// convolutions, most of the work in the two plain ones.
constexpr OwnKernels kOwnKernels[] = {
    {"planar", OperatorFamily::kConv2d},  // with a pooling or without
    {"pool", OperatorFamily::kPool},
    {"expand", OperatorFamily::kConv2d},
    {"project", OperatorFamily::kConv2d},
    {"inverted_residual", OperatorFamily::kConv2d},
    {"depthwise", OperatorFamily::kConv2dDepthwise},
    {"grouped", OperatorFamily::kConv2dGrouped},
    {"conv2d", OperatorFamily::kConv2d},
    {"dense", OperatorFamily::kDense},
    {"matmul", OperatorFamily::kBatchMatmul},
    {"lstm", OperatorFamily::kDense},
    {"gru", OperatorFamily::kDense},
    {"rows", OperatorFamily::kReduce},  // softmax, normalisations, sums
    {"resample", OperatorFamily::kResize},
    {"gather", OperatorFamily::kRearrange},
    {"elementwise", OperatorFamily::kElementwise},
    {"add_int8", OperatorFamily::kElementwise},
    {"map_int8", OperatorFamily::kElementwise},
    {"quantize", OperatorFamily::kElementwise},  // dequantize, requantize
    {"cast_to", OperatorFamily::kElementwise},
};

constexpr std::string_view kPartialReaders[] = {"take",
                                                "gather",
                                                "gather_nd",
                                                "strided_slice",
                                                "slice_like",
                                                "adv_index",
                                                "image_grid_sample",
                                                "image_crop_and_resize",
                                                "vision_non_max_suppression",
                                                "nn_sparse_dense",
                                                "nn_sparse_conv2d"};

struct Names {
  std::string_view key, title;
};
constexpr Names kNames[kOperatorFamilies] = {
    {"conv2d", "convolution"},
    {"conv2d_grouped", "convolution, grouped"},
    {"conv2d_depthwise", "convolution, depthwise"},
    {"conv2d_transpose", "convolution, transposed"},
    {"conv_other", "convolution, other"},
    {"dense", "dense"},
    {"batch_matmul", "batch matmul"},
    {"pool", "pooling"},
    {"softmax", "softmax"},
    {"normalize", "normalization"},
    {"reduce", "reduction"},
    {"resize", "resize"},
    {"rearrange", "concat, split, shuffle"},
    {"layout_transform", "layout transform"},
    {"elementwise", "elementwise"},
    {"copy", "copy"},
    {"view", "view (nothing done)"},
    {"unknown", "unknown"},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of `word` if `text` starts with it as a whole word, else 0.
std::size_t whole_word(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return 0;
  return text.size() == word.size() || text[word.size()] == '_' ? word.size() : 0;
}

// The longest operator that `text` starts with: "floor_divide" is not "floor".
std::string_view first_operator(std::string_view text, const Group** group) {
  std::size_t longest = 0;
  for (const Group& candidate : kFamilies) {
    std::string_view rest = candidate.operators;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::size_t length = whole_word(text, rest.substr(0, end));
      if (length > longest) {
        longest = length;
        *group = &candidate;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return text.substr(0, longest);
}

// Without "tvmgen_<module>_fused_" or "fused_"; empty where the name has neither.
std::string_view without_prefix(std::string_view function) {
  if (function.starts_with("tvmgen_")) {
    const std::size_t fused = function.find("_fused_");
    if (fused == std::string_view::npos) return {};
    function.remove_prefix(fused + 1);
  }
  constexpr std::string_view kFused = "fused_";
  return function.starts_with(kFused) ? function.substr(kFused.size()) : std::string_view();
}

// Takes "_12" off the end, if it is there.
bool drop_number(std::string_view& name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1])) --end;
  if (end == name.size() || end == 0 || name[end - 1] != '_') return false;
  name = name.substr(0, end - 1);
  return true;
}

OperatorFamily own_family(std::string_view kernel) {
  for (const OwnKernels& own : kOwnKernels) {
    if (kernel.find(own.part) != std::string_view::npos) return own.family;
  }
  return OperatorFamily::kUnknown;
}

}  // namespace

std::string_view operator_family_key(OperatorFamily family) {
  return kNames[static_cast<std::size_t>(family)].key;
}

std::string_view operator_family_title(OperatorFamily family) {
  return kNames[static_cast<std::size_t>(family)].title;
}

FunctionName parse_function_name(std::string_view function) {
  FunctionName name;
  std::string_view rest = without_prefix(function);
  if (rest.empty()) return name;
  name.complete = true;
  drop_number(rest);
  if (rest.ends_with('_')) {
    // Cut after 80 characters, which may be in the middle of an operator, then "_<hash>_".
    name.complete = false;
    rest.remove_suffix(1);
    rest = rest.substr(0, std::min(rest.rfind('_'), rest.size()));
  }
  if (rest.starts_with(kOwnPrefix)) {
    // Never fused with others; numbered twice, when the layer was made and by TVM.
    while (drop_number(rest)) {
    }
    name.operators.push_back(rest);
    return name;
  }
  while (!rest.empty()) {
    const Group* group = nullptr;
    const std::string_view found = first_operator(rest, &group);
    if (found.empty()) {
      name.complete = false;
    } else {
      name.operators.push_back(found);
    }
    const std::size_t end = found.empty() ? rest.find('_') : found.size();
    rest.remove_prefix(end >= rest.size() ? rest.size() : end + 1);
  }
  return name;
}

OperatorFamily family_of(const FunctionName& name) {
  const Group* strongest = nullptr;
  for (const std::string_view found : name.operators) {
    if (found.starts_with(kOwnPrefix)) return own_family(found.substr(kOwnPrefix.size()));
    const Group* group = nullptr;
    first_operator(found, &group);
    if (strongest == nullptr || group->role > strongest->role) strongest = group;
  }
  if (strongest == nullptr) return OperatorFamily::kUnknown;
  // What is missing from the name may be what decides.
  if (!name.complete && strongest->role != Role::kMain) return OperatorFamily::kUnknown;
  return strongest->family;
}

bool reads_partially(const FunctionName& name) {
  return std::any_of(name.operators.begin(), name.operators.end(), [](std::string_view found) {
    return std::find(std::begin(kPartialReaders), std::end(kPartialReaders), found) !=
           std::end(kPartialReaders);
  });
}

}  // namespace run_model
