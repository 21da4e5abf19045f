#include "tests/corruption/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace run_model::corruption {

// A broken reader fails on thousands of files: the first few tell enough.
constexpr int kFailuresToShow = 20;

Sweep::Sweep(std::initializer_list<ErrorKind> allowed, std::string name,
             std::size_t largest_allocation)
    : allowed_(allowed), name_(std::move(name)), largest_allocation_(largest_allocation) {}

Sweep::~Sweep() {
  EXPECT_GT(refused(), 0u);
  testing::Test::RecordProperty("accepted", std::to_string(accepted_));
  testing::Test::RecordProperty("refused", std::to_string(refused()));
}

std::size_t Sweep::refused() const {
  std::size_t sum = 0;
  for (const auto& [code, count] : refused_) sum += count;
  return sum;
}

bool Sweep::accepts(const std::string& description, const std::function<void()>& read) {
  if (testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() >
      kFailuresToShow) {
    return false;
  }
  reset_largest_allocation();
  try {
    read();
    check_allocation(description);
    ++accepted_;
    return true;
  } catch (const Error& error) {
    check_allocation(description);
    ++refused_[error.kind()];
    EXPECT_NE(std::find(allowed_.begin(), allowed_.end(), error.kind()), allowed_.end())
        << description << ": " << error_kind_name(error.kind()) << ": " << error.what();
    check_message(description, error.what());
  } catch (const std::exception& error) {
    ADD_FAILURE() << description << ": an exception other than Error: " << error.what();
  }
  return false;
}

// Names in a damaged file end up in messages, and messages on a terminal.
void Sweep::check_message(const std::string& description, const std::string& message) const {
  EXPECT_TRUE(is_utf8(message)) << description;
  EXPECT_TRUE(std::none_of(message.begin(), message.end(),
                           [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      << description << ": control characters in: " << message;
  EXPECT_LT(message.size(), 1000u) << description << ": " << message;
  EXPECT_NE(message.find(name_), std::string::npos)
      << description << ": the file is not named: " << message;
}

void Sweep::check_allocation(const std::string& description) const {
  EXPECT_LE(largest_allocation(), largest_allocation_) << description;
}

}  // namespace run_model::corruption
