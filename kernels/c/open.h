/* Tensors whose extents are known only when code runs: their types, and how they are broadcast.
 *
 * Follows ffi_c.py's VALUES, FAIL and RUNTIME.
 */
#ifndef RUN_MODEL_KERNELS_OPEN_H_
#define RUN_MODEL_KERNELS_OPEN_H_

enum { MOST_AXES = 8 };

static inline int is_float32(const Tensor* tensor) {
  return tensor && tensor->code == FLOAT && tensor->bits == 32 && tensor->lanes == 1;
}

/* Along each of `axes` axes with these extents, how far apart a tensor's numbers are: 0 where it is
 * broadcast.  It may have fewer axes.  -1 where it does not fit. */
static inline int find_steps(const Tensor* of, int axes, const long* extents, long* steps) {
  if (of->ndim > axes) return -1;
  long step = 1;
  for (int axis = axes - 1, own = of->ndim - 1; axis >= 0; --axis, --own) {
    const long extent = own >= 0 ? of->shape[own] : 1;
    if (extent != 1 && extent != extents[axis]) return -1;
    steps[axis] = extent == 1 ? 0 : step;
    step *= extent;
  }
  return 0;
}

/* A task on this thread where there is little to do, which costs less than waking others. */
static inline int launch_if_large(Task task, void* of, double additions) {
  enum { FEW = 40000 };
  Group alone = {0, 1};
  if (additions > FEW) return launch(task, of);
  return task(0, &alone, of) ? no_memory() : 0;
}

#endif /* RUN_MODEL_KERNELS_OPEN_H_ */
