// The networks of make_networks. Kept here because CTest has to know the names before the networks
// are made; a test compares this list with what was made.
#pragma once

#include <array>

namespace run_model {

inline constexpr std::array kNetworkNames = {
    "arg_and_top",
    "barrier_between_loops",
    "barriers_bitserial",
    "bools",
    "casts",
    "chained_views",
    "conv_batch_of_three",
    "conv_depthwise",
    "conv_grouped",
    "conv_kernel_sizes",
    "conv_layouts_avx2",
    "conv_nhwc",
    "conv_transpose",
    "copy_nodes",
    "efficientnet_lite",
    "flattened_arguments",
    "float16_avx2",
    "float16_baseline",
    "float16_weights",
    "int64_indices",
    "int8_qnn",
    "int8_relay_quantize",
    "int8_relay_quantize_avx2",
    "large_workspaces",
    "linked_params",
    "named_module",
    "opt_level_0",
    "opt_level_1",
    "output_is_constant",
    "output_is_input",
    "output_is_parameter",
    "pooling",
    "reshape_views",
    "reshaped_input_is_output",
    "resnet",
    "same_output_twice",
    "scalars",
    "shufflenet_v2",
    "single_file",
    "single_file_without_params",
    "sorting",
    "split_and_concatenate",
    "storage_reused_over_a_chain",
    "target_c",
    "target_c_single_file",
    "target_native",
    "transformer",
    "two_inputs_three_outputs",
    "uint8_image",
    "unused_input",
    "wide_integers_and_doubles",
    "without_assertions",
    "without_fusion",
    "without_parameters",
};

// Those that TVM's own runtime runs and this one refuses.
inline constexpr std::array kRefusedNetworkNames = {
    "calls_registered_function",
};

}  // namespace run_model
