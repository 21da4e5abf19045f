// Executors of libraries that are loaded already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <run_model/graph_executor.h>
#include "runtime/loading/model_library.h"
#include "tests/has_elements.h"
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class LoadedLibraryTest : public GraphExecutorTest {};

std::shared_ptr<Module> library() { return Module::open(EXECUTOR_MODEL); }

// The executor's library as a single-file export would have it, with a parameter of four floats.
class SingleFile : public ModelLibrary {
 public:
  SingleFile(std::string graph, std::string name, Tensor value)
      : library_(library()), value_(std::move(value)) {
    embedded_ = EmbeddedGraph{"default",
                              std::move(graph),
                              {Param{std::move(name), value_.shape(), value_.dtype(),
                                     std::as_bytes(value_.elements<float>())}},
                              nullptr};
  }
  const fs::path& path() const override { return library_->path(); }
  PackedFunction find(const std::string& name) const override { return library_->find(name); }
  const std::optional<EmbeddedGraph>& embedded_graph() const override { return embedded_; }

 private:
  std::shared_ptr<Module> library_;
  Tensor value_;  // aligned: it is used where it is
  std::optional<EmbeddedGraph> embedded_;
};

TEST_F(LoadedLibraryTest, MakesInputsOfAllThatALoadedLibrarysGraphTakes) {
  GraphExecutor executor(library(), add_graph().dump());
  ASSERT_EQ(executor.inputs().size(), 2u);
  EXPECT_EQ(executor.inputs()[1].name, "w");
  EXPECT_TRUE(
      throws_error([&] { executor.run(); }, ErrorKind::kMismatch, "'x' (float32 [4]), 'w'"));
  executor.set_input(0, vector_of({1, 2, 3, 4}));
  executor.set_input(1, vector_of({10, 20, 30, 40}));
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {11, 22, 33, 44}));
}

TEST_F(LoadedLibraryTest, NamesALoadedLibraryThatLacksAFunctionOrAGraph) {
  json graph = add_graph();
  graph["nodes"][2]["attrs"]["func_name"] = "fused_other";
  EXPECT_TRUE(throws_error([&] { GraphExecutor executor(library(), graph.dump()); },
                           ErrorKind::kMismatch, fs::path(EXECUTOR_MODEL).filename().string()));
  EXPECT_TRUE(throws_error([&] { GraphExecutor executor(library()); }, ErrorKind::kMismatch,
                           "holds no graph"));
  EXPECT_TRUE(throws_error([&] { GraphExecutor executor(library(), "{"); }, ErrorKind::kFormat,
                           "the graph for library"));
}

TEST_F(LoadedLibraryTest, TakesParametersOfALibraryForItsOwnGraphOnly) {
  const std::string text = add_graph().dump();
  const auto module = std::make_shared<SingleFile>(text, "w", vector_of({1, 2, 3, 4}));
  for (const bool given : {false, true}) {
    GraphExecutor executor = given ? GraphExecutor(module, text) : GraphExecutor(module);
    ASSERT_EQ(executor.inputs().size(), 1u);
    EXPECT_EQ(executor.memory().params_mapped, 16u);
    executor.set_input(0, vector_of({1, 1, 1, 1}));
    executor.run();
    EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
  }
  EXPECT_EQ(GraphExecutor(module, text + "\n").inputs().size(), 2u);
}

TEST_F(LoadedLibraryTest, RunsWithZerosWhereInputsNeedNotBeSet) {
  ExecutorOptions options;
  options.require_inputs = false;
  GraphExecutor executor(files(add_graph(), add_params(true)), options);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {1, 2, 3, 4}));
}

TEST_F(LoadedLibraryTest, RunsOnTheSharedPoolOfTheTime) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  executor.set_input(0, vector_of({1, 1, 1, 1}));
  const std::shared_ptr<ThreadPool> before = ThreadPool::shared();
  const auto pool = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = 1});
  ThreadPool::set_shared(pool);
  EXPECT_EQ(ThreadPool::shared(), pool);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
  ThreadPool::set_shared(before);
  EXPECT_EQ(pool.use_count(), 1) << "the executor keeps a pool that is the shared one no more";
}

}  // namespace
}  // namespace run_model
