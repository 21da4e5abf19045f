#include "run_model/run_model/compare/compare_flags.h"

#include <cmath>
#include <string>

#include <run_model/error.h>
#include "run_model/shared/arguments.h"

DEFINE_bool(compare, false, "compare two reports, or two files of arrays, instead of running");
DEFINE_double(atol, 1e-8, "arrays may differ by this, plus --rtol times the first one's value");
DEFINE_double(rtol, 1e-5, "arrays may differ by this share of the first one's value, plus --atol");
DEFINE_string(noise, "2%", "a smaller difference in time is none");

namespace run_model {
namespace {

double tolerance(const char* name, double value) {
  if (std::isfinite(value) && value >= 0) return value;
  throw Error(ErrorKind::kUsage,
              "--" + std::string(name) + " is " + std::to_string(value) +
                  ", expected a number that is not negative",
              "run_model --help shows the usage");
}

}  // namespace

CompareSettings read_compare_settings() {
  return {tolerance("atol", FLAGS_atol), tolerance("rtol", FLAGS_rtol),
          parse_percentage("noise", FLAGS_noise)};
}

}  // namespace run_model
