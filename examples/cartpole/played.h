// What episodes came to: rewards, and how long the policy took.
#pragma once

#include <string>
#include <vector>

struct Played {
  int seed = 0;
  std::vector<int> rewards;     // of each episode, at least one
  std::vector<double> step_us;  // of each step: observation in, inference, action out
  double elapsed_s = 0;
};

// Four lines for a person.
std::string to_text(const Played& played);

// One object, schema_version 1.
std::string to_json(const Played& played);
