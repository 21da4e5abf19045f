// The most float32 multiply-adds that this machine's vector units do, for the share of it that a
// layer reaches:
//   fma_peak [THREADS...]     (default: 1 and the number of CPUs)
// Prints one JSON object: {"avx512": {"1": GFLOP/s, "2": ...}, "avx2": ...}, a multiply-add counted
// as two operations. Of each the best of some trials: nothing makes a processor faster than it is.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace {

// Multiply-adds that depend on their own result only. A result takes 4 to 5 cycles and two can be
// begun in a cycle on today's CPUs, so that 10 chains would do; 12 fit every register file but
// AVX-512's, which has room to spare. x = x * a + b goes to b / (1 - a): neither to 0, whose
// neighbours are slow to compute with on some CPUs, nor to infinity.
constexpr int kChains = 12;
constexpr int kSteps = 8;
constexpr float kFactor = 0.5f;
constexpr float kSummand = 1.0f;

#define RUN_CHAINS(VECTOR, BROADCAST, FMA, FIRST)                                    \
  VECTOR factor = BROADCAST(kFactor), summand = BROADCAST(kSummand);                 \
  VECTOR chain[kChains];                                                             \
  for (int i = 0; i < kChains; ++i) chain[i] = BROADCAST(1.0f + i);                  \
  for (long round = 0; round < rounds; ++round) {                                    \
    _Pragma("GCC unroll 8") for (int step = 0; step < kSteps; ++step) {              \
      _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) { chain[i] = FMA; } \
    }                                                                                \
  }                                                                                  \
  float sum = 0;                                                                     \
  for (int i = 0; i < kChains; ++i) sum += FIRST(chain[i]);                          \
  return sum;

struct Unit {
  const char* name;
  int lanes;
  float (*run)(long rounds);  // the sum keeps the compiler from leaving the work out
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float run_avx512(long rounds) {
  RUN_CHAINS(__m512, _mm512_set1_ps, _mm512_fmadd_ps(chain[i], factor, summand), _mm512_cvtss_f32)
}

__attribute__((target("avx2,fma"))) float run_avx2(long rounds){
    RUN_CHAINS(__m256, _mm256_set1_ps, _mm256_fmadd_ps(chain[i], factor, summand),
               _mm256_cvtss_f32)}

std::vector<Unit> units() {
  std::vector<Unit> found;
  if (__builtin_cpu_supports("avx512f")) found.push_back({"avx512", 16, run_avx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back({"avx2", 8, run_avx2});
  }
  return found;
}
#elif defined(__ARM_NEON)
#if defined(__aarch64__)
#define NEON_FMA vfmaq_f32(summand, chain[i], factor)
constexpr const char* kNeon = "neon64";
#else
#define NEON_FMA vmlaq_f32(summand, chain[i], factor)
constexpr const char* kNeon = "neon32";
#endif
#define NEON_FIRST(vector) vgetq_lane_f32(vector, 0)
float run_neon(long rounds){RUN_CHAINS(float32x4_t, vdupq_n_f32, NEON_FMA, NEON_FIRST)}

std::vector<Unit> units() {
  return {{kNeon, 4, run_neon}};
}
#else
std::vector<Unit> units() { return {}; }
#endif

using Clock = std::chrono::steady_clock;

std::atomic<float> sink;

// Seconds from when the first of `threads` threads, which begin together, begins until the last one
// has done `rounds`.
double timed(const Unit& unit, int threads, long rounds) {
  std::barrier together(threads);
  std::vector<Clock::time_point> begins(threads), ends(threads);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      together.arrive_and_wait();
      begins[i] = Clock::now();
      sink = unit.run(rounds);
      ends[i] = Clock::now();
    });
  }
  for (std::thread& worker : workers) worker.join();
  auto begin = *std::min_element(begins.begin(), begins.end());
  auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - begin).count();
}

double gflop_per_s(const Unit& unit, int threads) {
  constexpr double kTrialSeconds = 0.03;
  constexpr int kTrials = 12;
  constexpr long kFirstRounds = 20000;
  double first = timed(unit, threads, kFirstRounds);
  long rounds = std::max(kFirstRounds, static_cast<long>(kFirstRounds * kTrialSeconds / first));
  double operations = 2.0 * unit.lanes * kChains * kSteps * static_cast<double>(rounds) * threads;
  double best = 0;
  for (int i = 0; i < kTrials; ++i) {
    best = std::max(best, operations / timed(unit, threads, rounds) / 1e9);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) {
    int cpus = std::max(1u, std::thread::hardware_concurrency());
    counts.push_back(1);
    if (cpus > 1) counts.push_back(cpus);
  }
  if (*std::min_element(counts.begin(), counts.end()) < 1) {
    std::fprintf(stderr, "usage: %s [THREADS...], numbers above 0\n", argv[0]);
    return 2;
  }
  std::string text;
  for (const Unit& unit : units()) {
    text += std::string(text.empty() ? "" : ", ") + "\"" + unit.name + "\": {";
    for (std::size_t i = 0; i < counts.size(); ++i) {
      char number[64];
      std::snprintf(number, sizeof(number), "%s\"%d\": %.1f", i == 0 ? "" : ", ", counts[i],
                    gflop_per_s(unit, counts[i]));
      text += number;
    }
    text += "}";
  }
  std::printf("{%s}\n", text.c_str());
  return 0;
}
