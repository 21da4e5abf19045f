// Balances a pole with a compiled policy, all of it on the board: no TVM, no Python, no network.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/graph_executor.h>
#include "cart_pole.h"
#include "played.h"

namespace {

using Clock = std::chrono::steady_clock;
using run_model::Error;
using run_model::ErrorKind;

constexpr const char* kUsage = "usage: cartpole_local POLICY.so [--episodes N] [--seed N] [--json]";

// `library`: a single-file one, observation float32 [1, 4] -> q_values float32 [1, 2].
Played play(const std::string& library, int episodes, int seed) {
  run_model::GraphExecutor policy({.library = library, .graph = {}, .params = {}});
  if (policy.outputs().at(0).shape != std::vector<std::int64_t>{1, 2}) {
    throw Error(ErrorKind::kMismatch, library + " has an output of another shape than [1, 2]");
  }
  auto observation = run_model::Tensor::empty({1, 4}, {kDLFloat, 32, 1});
  std::mt19937_64 random(seed);
  CartPole cart;
  Played played;
  played.seed = seed;
  const auto start = Clock::now();
  for (int episode = 0; episode < episodes; ++episode) {
    for (cart.reset(random); !cart.ended();) {
      const auto before = Clock::now();
      std::ranges::copy(cart.observation(), observation.elements<float>().begin());
      policy.set_input("observation", observation);
      policy.run();
      const auto q_values = policy.output(0).elements<float>();
      const auto action = q_values[1] > q_values[0] ? CartPole::kRight : CartPole::kLeft;
      const std::chrono::duration<double, std::micro> step = Clock::now() - before;
      played.step_us.push_back(step.count());
      cart.step(action);
    }
    played.rewards.push_back(cart.steps());
  }
  played.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  return played;
}

int to_number(const std::string& flag, const std::string& text) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != text.npos) {
    throw Error(ErrorKind::kUsage, flag + " takes a number up to 999999, not '" + text + "'",
                kUsage);
  }
  return std::stoi(text);
}

void run(const char* const* argument) {
  std::string library;
  int episodes = 100, seed = 1;
  bool json = false;
  while (*++argument != nullptr) {
    const std::string word = *argument;
    if (word == "--json") {
      json = true;
    } else if (word == "--episodes" || word == "--seed") {
      const char* value = argument[1] == nullptr ? "" : *++argument;
      (word == "--seed" ? seed : episodes) = to_number(word, value);
    } else if (library.empty() && !word.starts_with("-")) {
      library = word;
    } else {
      throw Error(ErrorKind::kUsage, "'" + word + "' is not expected", kUsage);
    }
  }
  if (library.empty() || episodes == 0) {
    throw Error(ErrorKind::kUsage, "a policy and at least one episode are needed", kUsage);
  }
  const Played played = play(library, episodes, seed);
  std::fputs((json ? to_json(played) : to_text(played)).c_str(), stdout);
}

}  // namespace

int main(int, char** argv) try { run(argv); } catch (const Error& error) {
  std::fprintf(stderr, "cartpole_local: %s\n", error.what());
  return 1 + static_cast<int>(error.kind());  // as run_model's own programs
} catch (const std::exception& error) {
  std::fprintf(stderr, "cartpole_local: %s\n", error.what());
  return 1;
}
