// What the two programs of the side-by-side benches share, so that they measure in the same way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/memory.h"

namespace run_model::bench {

using Clock = std::chrono::steady_clock;

inline double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A deterministic input in [-1, 1), the same for every program.
inline void fill_input(std::span<std::byte> floats) {
  std::uint32_t state = 1;
  for (; floats.size() >= sizeof(float); floats = floats.subspan(sizeof(float))) {
    state = state * 1664525u + 1013904223u;
    float value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    std::memcpy(floats.data(), &value, sizeof(value));
  }
}

// FNV-1a of the output's bytes: both programs run the same machine code, so it has to be equal.
inline std::uint64_t fingerprint(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

// A Subject has
//   explicit Subject(const std::vector<std::string>& arguments);  // ready, but nothing loaded
//   void load();                        // library, graph and parameters
//   std::vector<std::span<std::byte>> inputs();  // as named, to be written in place
//   void run();                         // on the inputs as they stand
//   std::vector<float> output();        // a copy of the first output of the last run
//   std::string extra_json() const;     // further members, each with a leading comma
//
// Usage of the program: <runs> <warm-up runs> <arguments of the subject …>. Prints one JSON object.
template <typename Subject>
int trial_main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s RUNS WARM_UP_RUNS ARGUMENTS...\n", argv[0]);
    return 2;
  }
  int runs = std::atoi(argv[1]);
  int warm_up = std::atoi(argv[2]);
  try {
    auto start = Clock::now();
    Subject subject(std::vector<std::string>(argv + 3, argv + argc));
    double runtime_ms = milliseconds_since(start);

    start = Clock::now();
    subject.load();
    double load_ms = milliseconds_since(start);
    for (std::span<std::byte> input : subject.inputs()) fill_input(input);
    subject.run();
    std::uint64_t output = fingerprint(subject.output());
    double first_ms = milliseconds_since(start);
    long peak_first = memory_kib("VmHWM");

    for (int i = 0; i < warm_up; ++i) subject.run();
    std::ostringstream times;
    for (int i = 0; i < runs; ++i) {
      start = Clock::now();
      subject.run();
      times << (i == 0 ? "" : ", ") << milliseconds_since(start);
    }
    // Who ran which part of a loop must not show.
    if (fingerprint(subject.output()) != output) {
      throw std::runtime_error("the output has changed from run to run");
    }
    std::printf("{\"runtime_ms\": %.4f, \"load_ms\": %.4f, \"first_ms\": %.4f, \"run_ms\": [%s], "
                "\"peak_first_kib\": %ld, \"peak_kib\": %ld, \"output\": \"%016llx\"%s}\n",
                runtime_ms, load_ms, first_ms, times.str().c_str(), peak_first, memory_kib("VmHWM"),
                static_cast<unsigned long long>(output), subject.extra_json().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}

}  // namespace run_model::bench
