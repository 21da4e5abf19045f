#include "run_model/shared/memory_stages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

constexpr std::size_t kKiB = 1024;

TEST(ProcessMemory, ReadsTheKernelsWords) {
  const TemporaryFolder root;
  root.write(
      "proc/self/status",
      "Name:\tx\nVmPeak:\t  999999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1696 kB\n"
      "RssAnon:\t     112 kB\nRssFile:\t    1584 kB\nRssShmem:\t       0 kB\nVmSwap:\t 8 kB\n");
  root.write("proc/self/smaps_rollup", "55-7f ---p 0 0:0 0 [rollup]\nRss: 1696 kB\nPss: 312 kB\n");
  const ProcessMemory memory = read_process_memory(root.path());
  EXPECT_EQ(memory.resident, 1696 * kKiB);
  EXPECT_EQ(memory.anonymous, 112 * kKiB);
  EXPECT_EQ(memory.file_backed, 1584 * kKiB);
  EXPECT_EQ(memory.shared, 0U);
  EXPECT_EQ(memory.peak, 2048 * kKiB);
  EXPECT_EQ(memory.swapped, 8 * kKiB);
  EXPECT_EQ(memory.proportional, 312 * kKiB);
}

TEST(ProcessMemory, WhatAnOldKernelDoesNotTellIsNothing) {
  const TemporaryFolder root;
  root.write("proc/self/status",
             "VmRSS:\t 4 kB\nRssAnon:\t kB\nRssFile:\t99999999999999999999 kB\n");
  const ProcessMemory memory = read_process_memory(root.path());
  EXPECT_EQ(memory.resident, 4 * kKiB);
  EXPECT_EQ(memory.anonymous, std::nullopt);
  EXPECT_EQ(memory.file_backed, std::nullopt);
  EXPECT_EQ(memory.peak, std::nullopt);
  EXPECT_EQ(memory.proportional, std::nullopt);
}

TEST(ProcessMemory, SeesPagesThatAreWritten) {
  constexpr std::size_t kBytes = 32 << 20;
  void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const ProcessMemory before = read_process_memory();
  std::memset(pages, 1, kBytes);
  const ProcessMemory after = read_process_memory();
  munmap(pages, kBytes);
  const ProcessMemory later = read_process_memory();
  if (!before.anonymous) GTEST_SKIP() << "this kernel tells nothing";
  constexpr std::size_t kMost = kBytes * 9 / 10;
  EXPECT_GE(*after.resident, *before.resident + kMost);
  EXPECT_GE(*after.anonymous, *before.anonymous + kMost);
  EXPECT_LE(*later.anonymous, *after.anonymous - kMost);
  EXPECT_GE(*later.peak, *after.resident - kBytes / 10);
}

TEST(MemoryStages, DisabledKeepsNothing) {
  MemoryStages stages;
  stages.mark(kStageStart);
  EXPECT_FALSE(stages.enabled());
  EXPECT_TRUE(stages.stages().empty());
}

TEST(MemoryStages, KeepsTheOrderAndTheLastReading) {
  MemoryStages stages(true);
  stages.mark(kStageStart);
  stages.mark(kStageFirstRun);
  stages.mark(kStageSteady);
  stages.mark(kStageFirstRun);
  ASSERT_EQ(stages.stages().size(), 3U);
  EXPECT_EQ(stages.stages()[0].name, "start");
  EXPECT_EQ(stages.stages()[1].name, "steady");
  EXPECT_EQ(stages.stages()[2].name, "first run");
}

}  // namespace
}  // namespace run_model
