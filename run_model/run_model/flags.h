// The flags of run_model.
#pragma once

#include <gflags/gflags.h>

DECLARE_string(inputs);
DECLARE_string(outputs);
DECLARE_bool(normalize);
DECLARE_bool(rgb);
DECLARE_bool(bgr);
DECLARE_string(mean);
DECLARE_string(std);
DECLARE_string(mean_order);
DECLARE_string(resizer);
DECLARE_string(fit);
DECLARE_int32(resize);
DECLARE_int32(crop);
DECLARE_string(layout);
DECLARE_string(dump_input);
DECLARE_string(fill_mode);
DECLARE_uint64(seed);
DECLARE_string(save_inputs);
DECLARE_string(target);
DECLARE_bool(verify);
DECLARE_bool(plan_memory);
DECLARE_bool(inspect);
DECLARE_bool(json);
DECLARE_int32(topk);
DECLARE_bool(print_memory);
