#include "rpc/server/process_end.h"

#include <signal.h>

#include <algorithm>
#include <array>

namespace run_model::rpc {
namespace {

struct KnownSignal {
  int number;
  const char* text;
  const char* advice;
};

constexpr char kMemoryAdvice[] =
    "compiled code used memory that is not its own: check that number, shapes and types of its "
    "arguments are those that it was compiled for";

constexpr std::array<KnownSignal, 9> kSignals{{
    {SIGSEGV, "SIGSEGV (segmentation fault)", kMemoryAdvice},
    {SIGBUS, "SIGBUS (bus error)", kMemoryAdvice},
    {SIGILL, "SIGILL (illegal instruction)",
     "the code has an instruction that this CPU does not know: compile it for this board's CPU, "
     "with -mcpu and -mattr of the target"},
    {SIGFPE, "SIGFPE (arithmetic error)", "compiled code divided an integer by zero"},
    {SIGABRT, "SIGABRT (abort)", "the code stopped itself, as after finding its memory damaged"},
    {SIGKILL, "SIGKILL (killed)",
     "nobody but the system does that, most likely because memory ran out: see dmesg on the board"},
    {SIGSYS, "SIGSYS (bad system call)", ""},
    {SIGTRAP, "SIGTRAP (trap)", "the code stopped itself"},
    {SIGTERM, "SIGTERM (terminated)", ""},
}};

const KnownSignal* find(int signal) {
  const auto* const found =
      std::find_if(kSignals.begin(), kSignals.end(),
                   [signal](const auto& known) { return known.number == signal; });
  return found == kSignals.end() ? nullptr : found;
}

}  // namespace

std::string signal_text(int signal) {
  const KnownSignal* known = find(signal);
  return known != nullptr ? known->text : "signal " + std::to_string(signal);
}

std::string signal_advice(int signal) {
  const KnownSignal* known = find(signal);
  return known != nullptr ? known->advice : "";
}

}  // namespace run_model::rpc
