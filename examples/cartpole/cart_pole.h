// A pole on a cart that is pushed left or right: the environment CartPole-v1 of Gymnasium.
#pragma once

#include <array>
#include <cstdint>
#include <random>

// Equations of motion without friction: A. Barto, R. Sutton and C. Anderson, "Neuronlike adaptive
// elements that can solve difficult learning control problems", IEEE Transactions on Systems, Man,
// and Cybernetics 13 (1983), in the form of R. Florian, "Correct equations for the dynamics of the
// cart-pole system" (2007). Constants, Euler integration, and the rules of how an episode starts
// and ends are those of Gymnasium's CartPole-v1.
class CartPole {
 public:
  // metres from the track's middle, metres/second, radians from upright, radians/second
  struct State {
    double x = 0;
    double x_dot = 0;
    double theta = 0;
    double theta_dot = 0;
  };
  enum Action { kLeft = 0, kRight = 1 };

  static constexpr int kMaxSteps = 500;

  // A new episode: each of the four values is drawn evenly from (-0.05, 0.05).
  void reset(std::mt19937_64& random);

  // A new episode from a given state.
  void reset(const State& state);

  // Pushes for 0.02 s. Each step counts 1 towards the episode's reward, the last one too.
  void step(Action action);

  const State& state() const { return state_; }

  // What a policy sees: the state rounded to float32. The state itself stays in double.
  std::array<float, 4> observation() const;

  int steps() const { return steps_; }
  // The cart left the track or the pole fell by more than 12 degrees.
  bool terminated() const;
  bool ended() const { return terminated() || steps_ >= kMaxSteps; }

 private:
  State state_;
  int steps_ = 0;
};
