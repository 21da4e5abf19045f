#include "runtime/threads/call_context.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include <run_model/tensor.h>

namespace run_model {
namespace {

TEST(WorkspaceTest, BlocksAreAlignedAndApart) {
  Workspace workspace;
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (const std::size_t bytes : {1, 100, 4096, 5000, 1 << 20}) {
    auto* data = static_cast<char*>(workspace.allocate(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kTensorAlignment, 0u);
    std::memset(data, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(data, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first[0], static_cast<char>(i));
    EXPECT_EQ(blocks[i].first[blocks[i].second - 1], static_cast<char>(i));
    EXPECT_TRUE(workspace.free(blocks[i].first)) << "in the order of allocation";
  }
}

TEST(WorkspaceTest, SecondRoundOfTheSameRequestsTakesNoNewMemory) {
  Workspace workspace;
  const auto round = [&] {
    void* a = workspace.allocate(10000);
    void* b = workspace.allocate(300);
    void* c = workspace.allocate(50000);
    EXPECT_TRUE(workspace.free(c));
    EXPECT_TRUE(workspace.free(b));
    EXPECT_TRUE(workspace.free(a));
  };
  round();
  const std::size_t held = workspace.held_bytes();
  for (int i = 0; i < 10; ++i) {
    round();
  }
  EXPECT_EQ(workspace.held_bytes(), held);
}

// Rising sizes, one at a time, must not leave a trail of smaller blocks.
TEST(WorkspaceTest, GrowsInsteadOfAddingBlocks) {
  Workspace workspace;
  for (std::size_t bytes = 4096; bytes <= 100 * 4096; bytes += 4096) {
    ASSERT_TRUE(workspace.free(workspace.allocate(bytes)));
  }
  EXPECT_EQ(workspace.held_bytes(), 100u * 4096u);
}

TEST(WorkspaceTest, SmallestBlockThatIsLargeEnoughServes) {
  Workspace workspace;
  void* large = workspace.allocate(1 << 20);
  void* small = workspace.allocate(8192);
  workspace.free(small);
  workspace.free(large);
  EXPECT_EQ(workspace.allocate(5000), small);
  EXPECT_EQ(workspace.allocate(5000), large);
}

TEST(WorkspaceTest, RefusesWhatItDidNotAllocate) {
  Workspace workspace;
  int other = 0;
  EXPECT_FALSE(workspace.free(&other));
  EXPECT_FALSE(workspace.free(nullptr));
  void* data = workspace.allocate(10);
  EXPECT_TRUE(workspace.free(data));
  EXPECT_FALSE(workspace.free(data)) << "freed twice";
}

TEST(WorkspaceTest, ImpossibleSizesGiveNull) {
  Workspace workspace;
  EXPECT_EQ(workspace.allocate(~std::uint64_t{0}), nullptr);
  EXPECT_EQ(workspace.allocate(std::uint64_t{1} << 62), nullptr);
  EXPECT_EQ(workspace.held_bytes(), 0u);
}

TEST(WorkspaceTest, ReleaseKeepsWhatIsInUse) {
  Workspace workspace;
  void* kept = workspace.allocate(4096);
  workspace.free(workspace.allocate(8192));
  workspace.release_unused();
  EXPECT_EQ(workspace.held_bytes(), 4096u);
  EXPECT_TRUE(workspace.free(kept));
}

TEST(WorkspaceTest, CountsTheMostThatAllHaveHeldTogether) {
  // More than other tests have held.
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto hold_both = [] {
    Workspace one, other;
    void* first = one.allocate(kBytes);
    void* second = other.allocate(kBytes);
    EXPECT_TRUE(one.free(first));
    EXPECT_TRUE(other.free(second));
    EXPECT_EQ(one.allocate(kBytes), first) << "kept for reuse";
    EXPECT_TRUE(one.free(first));
  };
  hold_both();
  const std::size_t most = Workspace::most_held_by_all();
  EXPECT_GE(most, 2 * kBytes);
  hold_both();
  EXPECT_EQ(Workspace::most_held_by_all(), most) << "given back in between";
}

TEST(WorkspaceTest, EachThreadHasItsOwn) {
  Workspace* other = nullptr;
  std::thread([&] { other = &Workspace::of_this_thread(); }).join();
  EXPECT_NE(other, &Workspace::of_this_thread());
  EXPECT_EQ(&Workspace::of_this_thread(), &Workspace::of_this_thread());
}

template <typename Exception>
void keep(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    set_last_packed_exception();
  }
}

TEST(LastPackedError, KeepsTheKindOfAnException) {
  keep(Error(ErrorKind::kMismatch, "a shape does not fit"));
  EXPECT_EQ(last_packed_error(), "a shape does not fit");
  EXPECT_EQ(last_packed_error_kind(), ErrorKind::kMismatch);
  keep(std::runtime_error("another reason"));
  EXPECT_EQ(last_packed_error(), "another reason");
  EXPECT_EQ(last_packed_error_kind(), ErrorKind::kModel);
  keep(Error(ErrorKind::kIncompatible, "a function is missing"));
  clear_last_packed_error();
  EXPECT_EQ(last_packed_error_kind(), ErrorKind::kModel) << "of nothing";
  keep(7);
  EXPECT_EQ(last_packed_error(), "");
}

TEST(CurrentPool, NestsAndRestores) {
  EXPECT_EQ(&current_thread_pool(), ThreadPool::shared().get());
  ThreadPool outer({.threads = 1});
  ThreadPool inner({.threads = 1});
  {
    CurrentPool use_outer(outer);
    {
      CurrentPool use_inner(inner);
      EXPECT_EQ(&current_thread_pool(), &inner);
    }
    EXPECT_EQ(&current_thread_pool(), &outer);
  }
  EXPECT_EQ(&current_thread_pool(), ThreadPool::shared().get());
}

}  // namespace
}  // namespace run_model
