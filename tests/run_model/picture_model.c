/* A stand-in for a compiled classifier of pictures of 3 x 4 x 4 into three classes. */
#include <dlpack/dlpack.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

enum { kChannels = 3, kPixels = 16 };

/* The runtime writes the address of its callback here. */
void (*__TVMAPISetLastError)(const char*) = 0;

static float* data_of(Value* args, int i) { return ((DLTensor*)args[i].v_handle)->data; }

/* The score of a class is the sum of a channel, and the bias. */
int fused_channel_sums(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  if (n != 3) return -1;
  for (int c = 0; c < kChannels; ++c) {
    float sum = data_of(args, 1)[c];
    for (int i = 0; i < kPixels; ++i) sum += data_of(args, 0)[c * kPixels + i];
    data_of(args, 2)[c] = sum;
  }
  return 0;
}

int fused_not_a_number(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  for (int c = 0; c < kChannels; ++c) data_of(args, 2)[c] = c == 1 ? NAN : 0.0f;
  return 0;
}

/* Another result each time. */
int fused_counting(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  static float calls = 0;
  (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  ++calls;
  for (int c = 0; c < kChannels; ++c) data_of(args, 2)[c] = calls;
  return 0;
}

int fused_late_not_a_number(Value* args, int* codes, int n, Value* ret, int* ret_code,
                            void* resource) {
  static int calls = 0;
  (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  ++calls;
  for (int c = 0; c < kChannels; ++c) data_of(args, 2)[c] = calls > 3 ? NAN : 0.0f;
  return 0;
}

/* The same result each time, but not on the same input. */
int fused_writes_input(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  data_of(args, 0)[0] += 1.0f;
  for (int c = 0; c < kChannels; ++c) data_of(args, 2)[c] = 0.0f;
  return 0;
}

int fused_failure(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  __TVMAPISetLastError("Assert fail: the model does not like this picture");
  return -1;
}

int fused_crash(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
  raise(SIGSEGV);
  return 0;
}

/* As where a whole number is divided by zero on x86; other CPUs do not trap by themselves. */
int fused_division_trap(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  raise(SIGFPE);
  return 0;
}

int fused_unknown_instruction(Value* args, int* codes, int n, Value* ret, int* ret_code,
                              void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  raise(SIGILL);
  return 0;
}

/* Reads a mapped file that has become shorter. */
int fused_shortened_file(Value* args, int* codes, int n, Value* ret, int* ret_code,
                         void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  FILE* file = tmpfile();
  if (ftruncate(fileno(file), 1) != 0) return -1;
  const volatile char* mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, fileno(file), 0);
  if (ftruncate(fileno(file), 0) != 0) return -1;
  return *mapped;
}

int fused_forever(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  for (;;) pause();
}
