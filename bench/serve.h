// A runtime in a process of its own that is asked over a pipe; peers/workers/worker.py speaks the
// same protocol for other runtimes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/memory.h"
#include "bench/trial.h"

namespace run_model::bench {

inline bool is_serve(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "serve";
}

inline std::vector<char> read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_floats(const std::string& path, std::span<const float> values) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

// From before the model is loaded until its first result has been copied out.
template <typename Subject>
void serve_load(Subject& subject, std::span<const char> values, const std::string& output_path) {
  auto start = Clock::now();
  subject.load();
  double load_ms = milliseconds_since(start);
  for (std::span<std::byte> input : subject.inputs()) {
    if (values.size() < input.size()) throw std::runtime_error("the input file is too short");
    std::memcpy(input.data(), values.data(), input.size());
    values = values.subspan(input.size());
  }
  if (!values.empty()) throw std::runtime_error("the input file is too long");
  subject.run();
  std::vector<float> output = subject.output();
  double first_ms = milliseconds_since(start);
  long peak = memory_kib("VmHWM");
  long anonymous = memory_kib("RssAnon");
  write_floats(output_path, output);
  std::printf("{\"load_ms\": %.4f, \"first_ms\": %.4f, \"peak_kib\": %ld, "
              "\"anonymous_kib\": %ld%s}\n",
              load_ms, first_ms, peak, anonymous, subject.extra_json().c_str());
}

template <typename Subject>
void serve_run(Subject& subject, int warm_up, int runs) {
  for (int i = 0; i < warm_up; ++i) subject.run();
  std::ostringstream times;
  for (int i = 0; i < runs; ++i) {
    auto start = Clock::now();
    subject.run();
    times << (i == 0 ? "" : ", ") << milliseconds_since(start);
  }
  std::printf("{\"run_ms\": [%s]}\n", times.str().c_str());
}

// Usage of the program: serve <input> <output> <arguments of the subject …>. `input` holds the
// model's inputs as bare values, one after the other in the order in which the arguments name them;
// `output` gets its first output as bare float32 values. Says in one
// line of JSON that it is ready, with its memory before anything of the model is touched; each line
// on standard input is then a command, answered by one line of JSON:
//   load                load the model and run it once
//   run WARM_UP RUNS    {"run_ms": milliseconds of each of RUNS inferences}
// The end of standard input ends the process.
template <typename Subject>
int serve_main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s serve INPUT OUTPUT ARGUMENTS...\n", argv[0]);
    return 2;
  }
  try {
    long bare = memory_kib("VmRSS");
    Subject subject(std::vector<std::string>(argv + 4, argv + argc));
    std::vector<char> input = read_bytes(argv[2]);
    reset_peak_memory();
    std::printf("{\"ready\": true, \"bare_kib\": %ld, \"idle_kib\": %ld, "
                "\"idle_anonymous_kib\": %ld}\n",
                bare, memory_kib("VmRSS"), memory_kib("RssAnon"));
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
      std::istringstream words(line);
      std::string command;
      int warm_up = 0;
      int runs = 0;
      words >> command;
      if (command == "load") {
        serve_load(subject, input, argv[3]);
      } else if (command == "run" && words >> warm_up >> runs) {
        serve_run(subject, warm_up, runs);
      } else {
        throw std::runtime_error("unknown command '" + line + "'");
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}

}  // namespace run_model::bench
