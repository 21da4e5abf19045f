#include "preprocess/png_filter.h"

#include <cstdlib>
#include <cstring>

namespace run_model {
namespace {

std::uint8_t sum(int a, int b) { return static_cast<std::uint8_t>(a + b); }

void unfilter_up(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  for (std::size_t i = 0; i < filtered.size(); ++i) {
    to[i] = sum(filtered[i], above[i]);
  }
}

template <int kChannels>
void unfilter_sub(Bytes filtered, std::uint8_t* to) {
  int left[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      left[c] = to[i + c] = sum(filtered[i + c], left[c]);
    }
  }
}

template <int kChannels>
void unfilter_average(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  int left[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      left[c] = to[i + c] = sum(filtered[i + c], (left[c] + above[i + c]) / 2);
    }
  }
}

// The neighbour nearest to left + up - corner; of equally near ones left before up before corner.
// Conditional moves instead of branches, which photographs make unpredictable.
int paeth(int left, int up, int corner) {
  const int to_left = up - corner;
  const int to_up = left - corner;
  const int to_corner = std::abs(to_left + to_up);
  int nearest = left;
  int distance = std::abs(to_left);
  nearest = std::abs(to_up) < distance ? up : nearest;
  distance = std::abs(to_up) < distance ? std::abs(to_up) : distance;
  return to_corner < distance ? corner : nearest;
}

template <int kChannels>
void unfilter_paeth(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  // The channels do not depend on each other, so the steps of one pixel overlap.
  int left[kChannels] = {};
  int corner[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      const int up = above[i + c];
      left[c] = to[i + c] = sum(filtered[i + c], paeth(left[c], up, corner[c]));
      corner[c] = up;
    }
  }
}

template <int kChannels>
bool unfilter(int filter, Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  switch (filter) {
    case 0:
      std::memmove(to, filtered.data(), filtered.size());
      return true;
    case 1:
      unfilter_sub<kChannels>(filtered, to);
      return true;
    case 2:
      unfilter_up(filtered, above, to);
      return true;
    case 3:
      unfilter_average<kChannels>(filtered, above, to);
      return true;
    case 4:
      unfilter_paeth<kChannels>(filtered, above, to);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool unfilter_png_row(int filter, int channels, Bytes filtered, const std::uint8_t* above,
                      std::uint8_t* to) {
  switch (channels) {
    case 1:
      return unfilter<1>(filter, filtered, above, to);
    case 2:
      return unfilter<2>(filter, filtered, above, to);
    case 3:
      return unfilter<3>(filter, filtered, above, to);
    case 4:
      return unfilter<4>(filter, filtered, above, to);
    default:
      return false;
  }
}

}  // namespace run_model
