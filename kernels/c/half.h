/* Numbers that are stored in half precision, float16: what vector.h leaves open, for HALF.
 *
 * float16 has 11 bits and ends at 65504.  Products are summed up in it over short runs only
 * (half_tile.h); all else is computed in float32 and rounded once, when it is stored.  What is
 * beyond float16 is stored as NaN and not as infinity, of which a clamp in a later layer would make
 * a number like any other; a NaN they hand on.
 */
#ifndef RUN_MODEL_KERNELS_HALF_H_
#define RUN_MODEL_KERNELS_HALF_H_

typedef _Float16 number;
typedef _Float16 stored_vec __attribute__((vector_size(2 * LANES)));
typedef _Float16 stored_vec_in_memory
    __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef short stored_mask __attribute__((vector_size(2 * LANES)));

KERNEL stored_vec load_stored(const _Float16* from) { return *(const stored_vec_in_memory*)from; }

KERNEL void store_stored(_Float16* to, stored_vec value) { *(stored_vec_in_memory*)to = value; }

KERNEL stored_vec stored_splat(_Float16 value) { return value - (stored_vec){0}; }

KERNEL vec to_floats(stored_vec value) { return __builtin_convertvector(value, vec); }

/* A NaN for an infinity. */
KERNEL stored_vec finite_or_nan(stored_vec value) { return value + value * (stored_vec){0}; }

KERNEL stored_vec stored_chosen(stored_mask where, stored_vec a, stored_vec b) {
  return (stored_vec)((where & (stored_mask)a) | (~where & (stored_mask)b));
}

/* NaN if one of both is, as vector.h's maximum() (40 means float16x8_t). */
KERNEL stored_vec stored_maximum(stored_vec a, stored_vec b) {
#if defined(NEON_CLANG) && defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
  return (stored_vec)__builtin_neon_vmaxq_f16((neon_bytes)a, (neon_bytes)b, 40);
#else
  return stored_chosen(b != b, b, stored_chosen(b > a, b, a));
#endif
}

KERNEL stored_vec stored_minimum(stored_vec a, stored_vec b) {
#if defined(NEON_CLANG) && defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
  return (stored_vec)__builtin_neon_vminq_f16((neon_bytes)a, (neon_bytes)b, 40);
#else
  return stored_chosen(b != b, b, stored_chosen(b < a, b, a));
#endif
}

/* vector.h's clamped() of numbers that have been rounded, infinities too: the same where the bounds
 * are float16 themselves, in half the instructions. */
KERNEL stored_vec stored_clamped(stored_vec value) {
#ifdef CLAMP_LOW
  value = stored_maximum(value, stored_splat((_Float16)CLAMP_LOW));
#endif
#ifdef CLAMP_HIGH
  value = stored_minimum(value, stored_splat((_Float16)CLAMP_HIGH));
#endif
#if !defined(CLAMP_LOW) || !defined(CLAMP_HIGH)
  value = finite_or_nan(value);
#endif
  return value;
}

#ifdef CLAMP_LOW
#define LOW_IS_HALF ((float)(_Float16)CLAMP_LOW == CLAMP_LOW)
#else
#define LOW_IS_HALF 1
#endif
#ifdef CLAMP_HIGH
#define HIGH_IS_HALF ((float)(_Float16)CLAMP_HIGH == CLAMP_HIGH)
#else
#define HIGH_IS_HALF 1
#endif
#define CLAMP_IS_HALF (LOW_IS_HALF && HIGH_IS_HALF)

KERNEL stored_vec to_stored(vec value) { return __builtin_convertvector(value, stored_vec); }

KERNEL vec load_halves(const _Float16* from) { return to_floats(load_stored(from)); }

KERNEL void store_halves(_Float16* to, vec value) {
  store_stored(to, finite_or_nan(to_stored(value)));
}

#define load(from) \
  _Generic((from), _Float16*: load_halves, const _Float16*: load_halves, default: load_floats)(from)
#define store(to, value) _Generic((to), _Float16*: store_halves, default: store_floats)(to, value)

#endif /* RUN_MODEL_KERNELS_HALF_H_ */
