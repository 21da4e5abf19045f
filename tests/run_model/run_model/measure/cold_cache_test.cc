#include "run_model/run_model/measure/cold_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

class Sysfs {
 public:
  void cache(int cpu, int index, const std::string& level, const std::string& type,
             const std::string& size, const std::string& shared) const {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" +
                               std::to_string(index) + "/";
    std::filesystem::create_directories(folder_ / folder);
    folder_.write(folder + "level", level + "\n");
    folder_.write(folder + "type", type + "\n");
    folder_.write(folder + "size", size + "\n");
    folder_.write(folder + "shared_cpu_list", shared + "\n");
  }

  std::size_t bytes(const std::vector<int>& cpus) const {
    return last_level_cache_bytes(cpus, folder_.path());
  }

 private:
  TemporaryFolder folder_;
};

constexpr std::size_t kKib = 1024;

TEST(ColdCacheTest, SharedCachesCountOnce) {
  const Sysfs sysfs;
  for (int cpu = 0; cpu < 4; ++cpu) {
    sysfs.cache(cpu, 0, "1", "Data", "32K", std::to_string(cpu));
    sysfs.cache(cpu, 1, "1", "Instruction", "64K", std::to_string(cpu));
    sysfs.cache(cpu, 2, "2", "Unified", cpu < 2 ? "512K" : "1M", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(sysfs.bytes({0, 1}), 512 * kKib);
  EXPECT_EQ(sysfs.bytes({0, 1, 2, 3}), (512 + 1024) * kKib);
  EXPECT_EQ(sysfs.bytes({3}), 1024 * kKib);
}

TEST(ColdCacheTest, InstructionCachesDoNotCount) {
  const Sysfs sysfs;
  sysfs.cache(0, 0, "1", "Data", "32K", "0");
  sysfs.cache(0, 1, "2", "Instruction", "999K", "0");
  EXPECT_EQ(sysfs.bytes({0}), 32 * kKib);
}

TEST(ColdCacheTest, UnknownSizesAreZero) {
  const Sysfs sysfs;
  EXPECT_EQ(sysfs.bytes({0, 7}), 0U);
  for (const char* size : {"", "lots", "32X", "99999999999999999999K", "-4K"}) {
    sysfs.cache(0, 0, "2", "Unified", size, "0");
    EXPECT_EQ(sysfs.bytes({0}), 0U) << size;
  }
}

}  // namespace
}  // namespace run_model
