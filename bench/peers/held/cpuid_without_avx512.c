#define _GNU_SOURCE  // REG_RIP
// Preloaded into a peer that is held to AVX2: answers the CPUID instructions that held/libraries.py
// has replaced as the processor does, but without AVX-512 and AMX, as if the CPU had neither.
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

// "Structured extended feature flags": Intel's Software Developer's Manual, volume 2A, CPUID.
enum { kFeatures = 7, kAvx10 = 0x24 };
#define BIT(n) (UINT32_C(1) << (n))
// AVX-512: F, DQ, IFMA, PF, ER, CD, BW, VL.
static const uint32_t kEbx =
    BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
// VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ.
static const uint32_t kEcx = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14);
// 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, AVX512-FP16, AMX-TILE, AMX-INT8.
static const uint32_t kEdx = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);
// Of sub-leaf 1: AVX512-BF16 and AMX-FP16; AVX10.
static const uint32_t kEax1 = BIT(5) | BIT(21);
static const uint32_t kEdx1 = BIT(19);

static void answer(int signal_number, siginfo_t* info, void* context) {
  (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uint8_t* code = (const uint8_t*)registers[REG_RIP];
  if (code[0] != 0x06 || code[1] != 0x06) {
    signal(signal_number, SIG_DFL);  // the instruction runs again and ends the process
    return;
  }
  uint32_t leaf = (uint32_t)registers[REG_RAX], sub = (uint32_t)registers[REG_RCX];
  uint32_t a, b, c, d;
  __cpuid_count(leaf, sub, a, b, c, d);
  if (leaf == kFeatures && sub == 0) {
    b &= ~kEbx;
    c &= ~kEcx;
    d &= ~kEdx;
  } else if (leaf == kFeatures && sub == 1) {
    a &= ~kEax1;
    d &= ~kEdx1;
  } else if (leaf == kAvx10) {
    a = b = c = d = 0;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void take_signal(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, 0);
}
