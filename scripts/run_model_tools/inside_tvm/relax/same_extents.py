"""Extents that are to be what they are taken for: compared when the network runs, by a C function.
TVM 0.27 crashes on match_cast where they are not."""

C_SOURCE = """\
static int copy(const Tensor *from, Tensor *to) {
  __builtin_memcpy(data(to), data(from), bytes(from));
  return 0;
}

/* (tensor, [the same]) */
EXPORTED __tvm_ffi_run_model_same_extents(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *from = count == 2 ? tensor(&values[0]) : 0;
  Tensor *to = from ? tensor(&values[1]) : 0;
  if (!to || from->ndim != to->ndim) return refuse();
  for (int i = 0; i < from->ndim; ++i) {
    if (from->shape[i] != to->shape[i])
      return fail("the network does not take inputs of these sizes: inside of it, extents that "
                  "have to be equal are not");
  }
  return copy(from, to);
}
"""
"""To follow ffi_c's."""


def of(tensor, kind):
    """A call that gives `tensor` as one of the type `kind`, or an error if it has other extents."""
    from tvm import relax

    return relax.op.call_dps_packed("run_model_same_extents", relax.Tuple([tensor]), kind)
