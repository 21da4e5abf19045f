#include "cart_pole.h"

#include <cmath>
#include <numbers>

namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = 1.0 + kPoleMass;
constexpr double kHalfLength = 0.5;
constexpr double kPoleMoment = kPoleMass * kHalfLength;
constexpr double kForce = 10.0;
constexpr double kSeconds = 0.02;
constexpr double kMaxX = 2.4;
constexpr double kMaxTheta = 12 * 2 * std::numbers::pi / 360;

// The same on every machine, unlike std::uniform_real_distribution: the upper 53 bits as a
// fraction.
double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

}  // namespace

void CartPole::reset(std::mt19937_64& random) {
  State state;
  for (double* value : {&state.x, &state.x_dot, &state.theta, &state.theta_dot}) {
    *value = uniform(random, -0.05, 0.05);
  }
  reset(state);
}

void CartPole::reset(const State& state) {
  state_ = state;
  steps_ = 0;
}

void CartPole::step(Action action) {
  const auto [x, x_dot, theta, theta_dot] = state_;
  const double force = action == kRight ? kForce : -kForce;
  const double cosine = std::cos(theta);
  const double sine = std::sin(theta);
  const double push = (force + kPoleMoment * theta_dot * theta_dot * sine) / kTotalMass;
  const double theta_acceleration =
      (kGravity * sine - cosine * push) /
      (kHalfLength * (4.0 / 3.0 - kPoleMass * cosine * cosine / kTotalMass));
  const double x_acceleration = push - kPoleMoment * theta_acceleration * cosine / kTotalMass;
  // Explicit Euler: positions move with the velocities from before the push.
  state_ = {.x = x + kSeconds * x_dot,
            .x_dot = x_dot + kSeconds * x_acceleration,
            .theta = theta + kSeconds * theta_dot,
            .theta_dot = theta_dot + kSeconds * theta_acceleration};
  ++steps_;
}

std::array<float, 4> CartPole::observation() const {
  return {static_cast<float>(state_.x), static_cast<float>(state_.x_dot),
          static_cast<float>(state_.theta), static_cast<float>(state_.theta_dot)};
}

bool CartPole::terminated() const {
  return std::abs(state_.x) > kMaxX || std::abs(state_.theta) > kMaxTheta;
}
