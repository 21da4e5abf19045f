// The flags of --compare.
#pragma once

#include <gflags/gflags.h>

DECLARE_bool(compare);
DECLARE_double(atol);
DECLARE_double(rtol);
DECLARE_string(noise);

namespace run_model {

struct CompareSettings {
  double atol = 1e-8;  // of arrays: numpy.allclose's
  double rtol = 1e-5;
  double noise = 0.02;  // of times: the smallest difference that counts
};

// From gflags' flags. Throws Error(kUsage) for values out of range.
CompareSettings read_compare_settings();

}  // namespace run_model
