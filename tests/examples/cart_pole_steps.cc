// Runs the dynamics for cart_pole_test.py. Each line of the input is an action and, where it is not
// to go on from the state before, a state:
//
//   ACTION [X X_DOT THETA THETA_DOT]
//
// and each line of the output the state after it, 1 if it has terminated and if the episode has
// ended, and the observation. "start SEED N" instead writes N initial states.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "cart_pole.h"

int main() {
  CartPole cart;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "start") {
      unsigned seed = 0;
      int count = 0;
      words >> seed >> count;
      for (std::mt19937_64 random(seed); count > 0; --count) {
        cart.reset(random);
        const auto& [x, x_dot, theta, theta_dot] = cart.state();
        std::printf("%.17g %.17g %.17g %.17g\n", x, x_dot, theta, theta_dot);
      }
      continue;
    }
    CartPole::State start;
    if (words >> start.x >> start.x_dot >> start.theta >> start.theta_dot) cart.reset(start);
    cart.step(first == "1" ? CartPole::kRight : CartPole::kLeft);
    const auto& [x, x_dot, theta, theta_dot] = cart.state();
    const auto seen = cart.observation();
    std::printf("%.17g %.17g %.17g %.17g %d %d %.9g %.9g %.9g %.9g\n", x, x_dot, theta, theta_dot,
                cart.terminated() ? 1 : 0, cart.ended() ? 1 : 0, seen[0], seen[1], seen[2],
                seen[3]);
    std::fflush(stdout);
  }
}
