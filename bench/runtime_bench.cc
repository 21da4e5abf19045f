// What the runtime itself costs: calling nodes, handing work to threads, loading.
#include <benchmark/benchmark.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <run_model/graph_executor.h>

namespace run_model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Files that go away with the object.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(fs::temp_directory_path() / ("runtime_bench_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~ScratchFolder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A chain of `length` nodes that each call tiny_model's function on one float, alternating between
// two storages.
json chain_graph(int length) {
  json nodes = json::array({{{"op", "null"}, {"name", "x"}, {"inputs", json::array()}}});
  json shapes = json::array({json::array({1})});
  json types = json::array({"float32"});
  json storages = json::array({0});
  json rows = json::array({0, 1});
  for (int i = 0; i < length; ++i) {
    nodes.push_back({{"op", "tvm_op"},
                     {"name", "touch_" + std::to_string(i)},
                     {"inputs", json::array({json::array({i, 0, 0})})},
                     {"attrs",
                      {{"func_name", "tvmgen_default_touch"},
                       {"num_inputs", "1"},
                       {"num_outputs", "1"},
                       {"flatten_data", "0"}}}});
    shapes.push_back(json::array({1}));
    types.push_back("float32");
    storages.push_back(1 + i % 2);
    rows.push_back(i + 2);
  }
  return {{"nodes", nodes},
          {"arg_nodes", json::array({0})},
          {"heads", json::array({json::array({length, 0, 0})})},
          {"node_row_ptr", rows},
          {"attrs",
           {{"dltype", json::array({"list_str", types})},
            {"shape", json::array({"list_shape", shapes})},
            {"storage_id", json::array({"list_int", storages})}}}};
}

ModelFiles chain_model(const ScratchFolder& folder, int length) {
  fs::path graph = folder.path() / "model.json";
  std::ofstream(graph) << chain_graph(length).dump();
  return {TINY_MODEL, graph, {}};
}

void run_chain(benchmark::State& state) {
  ScratchFolder folder;
  GraphExecutor model(chain_model(folder, static_cast<int>(state.range(0))));
  model.input(0).elements<float>()[0] = 0;
  for (auto _ : state) model.run();
  if (model.output(0).elements<float>()[0] != static_cast<float>(state.range(0))) {
    state.SkipWithError("wrong result");
  }
  state.counters["per node"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(run_chain)->Arg(100);

void load_chain(benchmark::State& state) {
  ScratchFolder folder;
  ModelFiles files = chain_model(folder, static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(GraphExecutor(files));
}
BENCHMARK(load_chain)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

int empty_task(int, int, ThreadPool::Group*, void*) { return 0; }

// From launch to the return of the last thread, with nothing to do. Wall time: the work is shared.
void launch(benchmark::State& state) {
  ThreadPool pool({.threads = static_cast<int>(state.range(0))});
  for (auto _ : state) benchmark::DoNotOptimize(pool.launch(empty_task, nullptr, 0));
}
BENCHMARK(launch)->DenseRange(1, 2)->UseRealTime();

// The same after a pause in which the workers have gone to sleep.
void launch_after_sleep(benchmark::State& state) {
  ThreadPool pool({.threads = 2, .spin_microseconds = 0});
  for (auto _ : state) {
    state.PauseTiming();
    usleep(2000);
    state.ResumeTiming();
    pool.launch(empty_task, nullptr, 0);
  }
}
BENCHMARK(launch_after_sleep)->UseRealTime()->Iterations(200);

}  // namespace
}  // namespace run_model

BENCHMARK_MAIN();
