// Balances a pole with a compiled policy, all of it on the board: no TVM, no Python, no network.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cart_pole.h"
#include "runtime/error.h"
#include "runtime/graph_executor.h"

namespace {

using Clock = std::chrono::steady_clock;
using run_model::Error;
using run_model::ErrorCode;

constexpr const char* kUsage = "usage: cartpole_local POLICY.so [--episodes N] [--seed N] [--json]";

struct Settings {
  std::string policy;  // a single-file library: float32 [1, 4] -> float32 [1, 2]
  int episodes = 100;
  int seed = 1;
  bool json = false;
};

struct Result {
  std::vector<int> rewards;     // of each episode
  std::vector<double> step_us;  // of each step: observation in, inference, action out
  double elapsed_s = 0;
};

int to_number(const std::string& flag, const char* text) {
  const std::string digits = text == nullptr ? "" : text;
  if (digits.empty() || digits.size() > 6 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ErrorCode::kUsage, flag + " takes a number up to 999999, not '" + digits + "'", kUsage);
  }
  return std::stoi(digits);
}

Settings parse(const char* const* argument) {
  Settings settings;
  while (*++argument != nullptr) {
    const std::string word = *argument;
    if (word == "--json") {
      settings.json = true;
    } else if (word == "--episodes" || word == "--seed") {
      (word == "--seed" ? settings.seed : settings.episodes) = to_number(word, argument[1]);
      ++argument;
    } else if (settings.policy.empty() && !word.starts_with("-")) {
      settings.policy = word;
    } else {
      throw Error(ErrorCode::kUsage, "'" + word + "' is not expected", kUsage);
    }
  }
  if (settings.policy.empty() || settings.episodes == 0) {
    throw Error(ErrorCode::kUsage, "a policy and at least one episode are needed", kUsage);
  }
  return settings;
}

Result play(const Settings& settings) {
  run_model::GraphExecutor policy({.library = settings.policy, .graph = {}, .params = {}});
  if (policy.outputs().at(0).shape != std::vector<std::int64_t>{1, 2}) {
    throw Error(ErrorCode::kMismatch, settings.policy + " has an output of another shape than [1, 2]");
  }
  auto observation = run_model::Tensor::empty({1, 4}, {kDLFloat, 32, 1});
  std::mt19937_64 random(settings.seed);
  CartPole cart;
  Result result;
  const auto start = Clock::now();
  for (int episode = 0; episode < settings.episodes; ++episode) {
    for (cart.reset(random); !cart.ended();) {
      const auto before = Clock::now();
      std::ranges::copy(cart.observation(), observation.elements<float>().begin());
      policy.set_input("observation", observation);
      policy.run();
      const auto q_values = policy.output(0).elements<float>();
      const auto action = q_values[1] > q_values[0] ? CartPole::kRight : CartPole::kLeft;
      result.step_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
      cart.step(action);
    }
    result.rewards.push_back(cart.steps());
  }
  result.elapsed_s = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

// Between the two nearest values in a straight line, as numpy.percentile does.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void print(const Settings& settings, Result result) {
  auto& us = result.step_us;
  std::ranges::sort(us);
  const double mean_us = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
  const double average =
      std::accumulate(result.rewards.begin(), result.rewards.end(), 0.0) / settings.episodes;
  const char* const form =
      settings.json
          ? "{\"schema_version\": 1, \"episodes\": %d, \"seed\": %d, \"elapsed_s\": %.6f, "
            "\"average_reward\": %.3f,\n \"step_us\": {\"count\": %zu, \"mean\": %.3f, \"median\": %.3f, "
            "\"p95\": %.3f, \"p99\": %.3f},\n \"rewards\": ["
          : "episodes        %d (seed %d)\nelapsed         %.2f s\naverage reward  %.2f\n"
            "step latency    %zu steps: mean %.1f, median %.1f, p95 %.1f, p99 %.1f microseconds\n";
  std::printf(form, settings.episodes, settings.seed, result.elapsed_s, average, us.size(), mean_us,
              quantile(us, 0.5), quantile(us, 0.95), quantile(us, 0.99));
  if (!settings.json) return;
  for (std::size_t i = 0; i < result.rewards.size(); ++i) {
    std::printf("%s%d", i == 0 ? "" : ", ", result.rewards[i]);
  }
  std::printf("]}\n");
}

}  // namespace

int main(int, char** argv) try {
  const Settings settings = parse(argv);
  print(settings, play(settings));
} catch (const Error& error) {
  std::fprintf(stderr, "cartpole_local: %s\n", error.what());
  return error.exit_code();
} catch (const std::exception& error) {
  std::fprintf(stderr, "cartpole_local: %s\n", error.what());
  return 1;
}
