// EXPECT_TRUE(has_elements(numbers, {1, 2, 3})).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

namespace run_model {

// Whether the container's elements are just these, in this order. ElementsAre says the same with
// types that are compiled anew for each number of elements and each of their types.
template <typename Container>
testing::AssertionResult has_elements(
    const Container& found, std::initializer_list<typename Container::value_type> expected) {
  if (std::equal(found.begin(), found.end(), expected.begin(), expected.end())) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "has " << testing::PrintToString(found) << "\nwhere "
                                     << testing::PrintToString(expected) << " is expected";
}

}  // namespace run_model
