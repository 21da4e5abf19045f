// Stands in for libunwind, which Debian's static glog asks for on x86 to print stack traces (on Arm
// and RISC-V it does with the compiler's own library, and nothing of this is used). Debian's static
// libunwind is not position-independent, and this program never logs a fatal message, the only kind
// that has a stack trace; without the library it is smaller too.
#if __has_include(<libunwind.h>)
#define UNW_LOCAL_ONLY
#include <libunwind.h>

// The names are macros for those of the machine's own library, such as _ULx86_64_step. On machines
// where unw_getcontext is inline code there is nothing to define for it.
extern "C" {

#ifdef __x86_64__
int unw_tdep_getcontext(unw_tdep_context_t*) { return -UNW_EUNSPEC; }
#endif

int unw_init_local(unw_cursor_t*, unw_context_t*) { return -UNW_EUNSPEC; }

int unw_step(unw_cursor_t*) { return -UNW_EUNSPEC; }

int unw_get_reg(unw_cursor_t*, unw_regnum_t, unw_word_t*) { return -UNW_EUNSPEC; }

}  // extern "C"
#endif
