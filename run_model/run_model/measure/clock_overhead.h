// What reading the clock costs.
#pragma once

namespace run_model {

// Milliseconds between two readings of the steady clock with nothing between them: the median of
// many tries. Every time that is taken with two readings contains it once.
double clock_overhead();

}  // namespace run_model
