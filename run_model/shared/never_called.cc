// Stands in for parts of Debian's static libraries that programs never call, although the parts
// that they call name them.
#include <cstddef>
#include <exception>

// Of gflags and glog: names of functions in stack traces, the handler of signals that prints those,
// and gflags' own completion of command lines, whose place a program's table of flags has taken.
// Where another release gives a function other parameters, it has its own.
namespace google {

bool Symbolize(void* address, char* name, std::size_t name_size);
bool Symbolize(void*, char*, std::size_t) { return false; }

void HandleCommandLineCompletions();
void HandleCommandLineCompletions() {}

namespace glog_internal_namespace_ {

bool IsFailureSignalHandlerInstalled();
bool IsFailureSignalHandlerInstalled() { return false; }

}  // namespace glog_internal_namespace_

}  // namespace google

// Of libjpeg-turbo, for a decoder: colour maps, quick upsampling, pictures made smaller and other
// inverse DCTs than the exact one, which have to be asked for, and on x86-64 the vector code of
// those and of the encoder, whose tables alone would take 100 KB of each program.

// C functions are linked by name; nothing looks at their parameters.
#define RUN_MODEL_NEVER_CALLED(name) \
  extern "C" void name();            \
  void name() { std::terminate(); }

RUN_MODEL_NEVER_CALLED(jinit_1pass_quantizer)
RUN_MODEL_NEVER_CALLED(jinit_2pass_quantizer)
RUN_MODEL_NEVER_CALLED(jinit_merged_upsampler)
RUN_MODEL_NEVER_CALLED(jpeg_idct_ifast)
RUN_MODEL_NEVER_CALLED(jpeg_idct_float)
RUN_MODEL_NEVER_CALLED(jpeg_idct_1x1)
RUN_MODEL_NEVER_CALLED(jpeg_idct_2x2)
RUN_MODEL_NEVER_CALLED(jpeg_idct_4x4)

#ifdef __x86_64__
#define RUN_MODEL_NO_TABLE(name) \
  extern "C" const char name[1]; \
  const char name[1] = {};

#define RUN_MODEL_NO_CONVERSION(direction, set)                     \
  RUN_MODEL_NEVER_CALLED(jsimd_rgb_##direction##_convert_##set)     \
  RUN_MODEL_NEVER_CALLED(jsimd_extrgb_##direction##_convert_##set)  \
  RUN_MODEL_NEVER_CALLED(jsimd_extrgbx_##direction##_convert_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_extbgr_##direction##_convert_##set)  \
  RUN_MODEL_NEVER_CALLED(jsimd_extbgrx_##direction##_convert_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_extxbgr_##direction##_convert_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_extxrgb_##direction##_convert_##set) \
  RUN_MODEL_NO_TABLE(jconst_rgb_##direction##_convert_##set)

RUN_MODEL_NO_CONVERSION(ycc, sse2)
RUN_MODEL_NO_CONVERSION(ycc, avx2)
RUN_MODEL_NO_CONVERSION(gray, sse2)
RUN_MODEL_NO_CONVERSION(gray, avx2)

#define RUN_MODEL_NO_UPSAMPLING(step, set)                             \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_merged_upsample_##set)         \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extrgb_merged_upsample_##set)  \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extrgbx_merged_upsample_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extbgr_merged_upsample_##set)  \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extbgrx_merged_upsample_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extxbgr_merged_upsample_##set) \
  RUN_MODEL_NEVER_CALLED(jsimd_##step##_extxrgb_merged_upsample_##set)

RUN_MODEL_NO_UPSAMPLING(h2v1, sse2)
RUN_MODEL_NO_UPSAMPLING(h2v1, avx2)
RUN_MODEL_NO_UPSAMPLING(h2v2, sse2)
RUN_MODEL_NO_UPSAMPLING(h2v2, avx2)
RUN_MODEL_NO_TABLE(jconst_merged_upsample_sse2)
RUN_MODEL_NO_TABLE(jconst_merged_upsample_avx2)

RUN_MODEL_NEVER_CALLED(jsimd_idct_ifast_sse2)
RUN_MODEL_NO_TABLE(jconst_idct_ifast_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_idct_float_sse2)
RUN_MODEL_NO_TABLE(jconst_idct_float_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_idct_2x2_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_idct_4x4_sse2)
RUN_MODEL_NO_TABLE(jconst_idct_red_sse2)

#define RUN_MODEL_NO_FORWARD_DCT(name)      \
  RUN_MODEL_NEVER_CALLED(jsimd_fdct_##name) \
  RUN_MODEL_NO_TABLE(jconst_fdct_##name)

RUN_MODEL_NO_FORWARD_DCT(islow_sse2)
RUN_MODEL_NO_FORWARD_DCT(islow_avx2)
RUN_MODEL_NO_FORWARD_DCT(ifast_sse2)
RUN_MODEL_NO_FORWARD_DCT(float_sse)

RUN_MODEL_NEVER_CALLED(jsimd_convsamp_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_convsamp_avx2)
RUN_MODEL_NEVER_CALLED(jsimd_convsamp_float_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_quantize_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_quantize_avx2)
RUN_MODEL_NEVER_CALLED(jsimd_quantize_float_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_h2v1_downsample_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_h2v1_downsample_avx2)
RUN_MODEL_NEVER_CALLED(jsimd_h2v2_downsample_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_h2v2_downsample_avx2)

RUN_MODEL_NEVER_CALLED(jsimd_encode_mcu_AC_first_prepare_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_encode_mcu_AC_refine_prepare_sse2)
RUN_MODEL_NEVER_CALLED(jsimd_huff_encode_one_block_sse2)
RUN_MODEL_NO_TABLE(jconst_huff_encode_one_block)
#endif
