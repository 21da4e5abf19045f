#include "runtime/cpu/clusters.h"

#include <gmock/gmock.h>

#include "runtime/cpu/topology.h"
#include "tests/boards.h"
#include "tests/has_elements.h"

namespace run_model {
namespace {

// The CPUs of each cluster, weakest first.
std::vector<std::string> clusters_of(const Board& board) {
  std::vector<std::string> lists;
  for (const CpuCluster& cluster : cpu_clusters(board.cpus(), board.root())) {
    lists.push_back(cpu_list_text(cluster.cpus));
  }
  return lists;
}

TEST(CpuClusters, OneKindOfCoreIsOneCluster) {
  EXPECT_TRUE(has_elements(clusters_of(raspberry_pi_4()), {"0-3"}));
  EXPECT_TRUE(has_elements(clusters_of(pynq_z1()), {"0-1"}));
  EXPECT_TRUE(has_elements(clusters_of(server_with_hyper_threads()), {"0-7"}));
}

TEST(CpuClusters, BigAndLittleByCapacity) {
  EXPECT_TRUE(has_elements(clusters_of(rk3399()), {"0-3", "4-5"}));
  EXPECT_TRUE(has_elements(clusters_of(odroid_xu4()), {"0-3", "4-7"}));
  const Board board = rk3399();
  const auto clusters = cpu_clusters(board.cpus(), board.root());
  EXPECT_EQ(clusters[0].capacity, 381);
  EXPECT_NEAR(clusters[0].strength, 381.0 / 1024, 1e-9);
  EXPECT_EQ(clusters[1].strength, 1.0);
  EXPECT_EQ(clusters[1].max_khz, 1'800'000U);
}

TEST(CpuClusters, ThreeClustersAreSortedByStrength) {
  EXPECT_TRUE(has_elements(clusters_of(snapdragon_865()), {"0-3", "4-6", "7"}));
}

TEST(CpuClusters, EqualCapacitiesAreNoCapacities) {
  EXPECT_TRUE(has_elements(clusters_of(rk3399_without_capacities()), {"0-3", "4-5"}));
}

TEST(CpuClusters, InOrderCoresAreWeakerAtTheSameFrequency) {
  EXPECT_TRUE(has_elements(clusters_of(helio_p60()), {"0-3", "4-7"}));
}

TEST(CpuClusters, FavouredCoresOfAPcAreNoCluster) {
  EXPECT_TRUE(has_elements(clusters_of(intel_13900k()), {"16-31", "0-15"}));
}

TEST(CpuClusters, IntelsListOfECoresWithoutFrequencies) {
  Board board(std::vector<BoardCpu>(6));
  board.write("sys/devices/cpu_atom/cpus", "2-5\n");
  EXPECT_TRUE(has_elements(clusters_of(board), {"2-5", "0-1"}));
  const auto clusters = cpu_clusters(board.cpus(), board.root());
  EXPECT_EQ(clusters[0].strength, 0.5);
}

TEST(CpuClusters, OnlyTheCpusThatAreAskedAbout) {
  const Board board = snapdragon_865();
  const std::vector<int> cpus{0, 7};
  const auto clusters = cpu_clusters(cpus, board.root());
  ASSERT_EQ(clusters.size(), 2U);
  EXPECT_TRUE(has_elements(clusters[0].cpus, {0}));
  EXPECT_TRUE(has_elements(clusters[1].cpus, {7}));
  EXPECT_TRUE(cpu_clusters({}, board.root()).empty());
}

TEST(CpuClusters, WhatOnlySomeCpusTellIsNotUsed) {
  EXPECT_TRUE(has_elements(clusters_of(Board({{200, 0, 0}, {0, 0, 0}, {1024, 0, 0}})), {"0-2"}));
  EXPECT_TRUE(has_elements(clusters_of(Board({{0, 1000, 0}, {0, 0, 0}})), {"0-1"}));
}

TEST(CpuClusters, NothingAtAllIsOneCluster) {
  const TemporaryFolder empty;
  const auto clusters = cpu_clusters(std::vector<int>{3, 5}, empty.path());
  ASSERT_EQ(clusters.size(), 1U);
  EXPECT_TRUE(has_elements(clusters[0].cpus, {3, 5}));
  EXPECT_EQ(clusters[0].strength, 1.0);
}

}  // namespace
}  // namespace run_model
