#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <run_model/thread_pool.h>
#include "rpc/functions/builtin.h"
#include "runtime/cpu/topology.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

// Restores what the functions change of the process.
class ThreadFunctionsTest : public testing::Test {
 protected:
  ThreadFunctionsTest() { add_thread_functions(registry_); }
  ~ThreadFunctionsTest() override {
    restrict_to_cpus(allowed_);
    ThreadPool::set_shared(pool_);
  }

  Value configure(std::vector<std::int64_t> numbers) {
    const std::vector<Value> arguments(numbers.begin(), numbers.end());
    return registry_.find("runtime.config_threadpool")->call(arguments);
  }
  std::int64_t threads() {
    return std::get<std::int64_t>(registry_.find("runtime.NumThreads")->call({}));
  }

  const std::vector<int> allowed_ = allowed_cpus();
  const std::shared_ptr<ThreadPool> pool_ = ThreadPool::shared();
  Registry registry_;
};

TEST_F(ThreadFunctionsTest, SetsTheNumberOfThreadsOfLaterCalls) {
  EXPECT_EQ(threads(), pool_->threads());
  for (const std::int64_t mode : {1, -1, 0}) {
    configure({mode, 1});
    EXPECT_EQ(threads(), 1);
    EXPECT_NE(ThreadPool::shared(), pool_);
  }
  const auto most = static_cast<std::int64_t>(allowed_.size());
  configure({1, most});
  EXPECT_EQ(threads(), most);
  configure({1, 1000});
  EXPECT_EQ(threads(), most) << "no more than there are CPUs";
}

TEST_F(ThreadFunctionsTest, TakesAsManyAsThereAreCoresForZero) {
  configure({1, 1});
  configure({0, 0});
  EXPECT_EQ(threads(), ThreadPool::default_threads());
  EXPECT_EQ(allowed_cpus(), allowed_);
}

TEST_F(ThreadFunctionsTest, KeepsToTheListedCpus) {
  const int first = allowed_.front();
  configure({-3, 1, first});
  EXPECT_TRUE(has_elements(allowed_cpus(), {first}));
  // A later call is not bound by an earlier one.
  configure({1, static_cast<std::int64_t>(allowed_.size())});
  EXPECT_EQ(allowed_cpus(), allowed_);
  std::vector<std::int64_t> all{-2, static_cast<std::int64_t>(allowed_.size())};
  all.insert(all.end(), allowed_.begin(), allowed_.end());
  configure(all);
  EXPECT_EQ(threads(), static_cast<std::int64_t>(allowed_.size()));
}

TEST_F(ThreadFunctionsTest, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(throws_error([&] { configure({1}); }, ErrorKind::kMismatch, "arguments"));
  EXPECT_TRUE(throws_error([&] { configure({1, -1}); }, ErrorKind::kMismatch, "is -1"));
  EXPECT_TRUE(throws_error([&] { configure({-3, 1, 60000}); }, ErrorKind::kUsage, ""));
  EXPECT_EQ(ThreadPool::shared(), pool_) << "a refused call changes nothing";
}

}  // namespace
}  // namespace run_model::rpc
