"""A network of one sample, for batches of any size: its function is called for one sample after the
other.

Halves of halves are called, so that a machine's stack is as deep as the number of samples has bits.
"""

from run_model_tools.kernels.c_compiler import c_to_object, target_flags
from run_model_tools.kernels.relax.ffi_c import FAIL, VALUES

_C_SOURCE = """\
/* Where the sample of this number lies in a batch, or null past the end of it. */
static char *place(const Tensor *batch, long long number, const Tensor *sample) {
  const long long size = bytes(sample);
  return number < 0 || (number + 1) * size > bytes(batch) ? 0 : data(batch) + number * size;
}

/* (first, end, [answer]): whether there is more than one sample. */
EXPORTED __tvm_ffi_run_model_several(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *answer = count == 3 ? tensor(&values[2]) : 0;
  if (!answer) return refuse();
  *data(answer) = values[1].number - values[0].number > 1;
  return 0;
}

/* (batch, number, [sample]): an empty batch has zeros. */
EXPORTED __tvm_ffi_run_model_take_sample(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *batch = count == 3 ? tensor(&values[0]) : 0;
  const Tensor *sample = batch ? tensor(&values[2]) : 0;
  if (!sample) return refuse();
  const char *from = place(batch, values[1].number, sample);
  if (from) __builtin_memcpy(data(sample), from, bytes(sample));
  else __builtin_memset(data(sample), 0, bytes(sample));
  return 0;
}

/* (sample, batch, number) */
EXPORTED __tvm_ffi_run_model_put_sample(void *self, const Any *values, int count, Any *result) {
  (void)self;
  const Tensor *sample = count == 3 ? tensor(&values[0]) : 0;
  const Tensor *batch = sample ? tensor(&values[1]) : 0;
  if (!batch) return refuse();
  char *to = place(batch, values[2].number, sample);
  if (to) __builtin_memcpy(to, data(sample), bytes(sample));
  result->type = NONE;
  result->more = 0;
  result->number = 0;
  return 0;
}
"""


def of_any_size(tvm, module, axes, target, folder, code):
    """A module with a main function for batches, where `module` has one for a sample; what it calls
    is added to `code`.

    axes: {"inputs", "outputs"}, along which axis of each samples lie; those before it are 1.
    """
    from tvm import relax

    one = module["main"]
    results = getattr(one.ret_ty, "fields", None)
    is_tuple, results = results is not None, [one.ret_ty] if results is None else list(results)
    inputs = [(p.name_hint if hasattr(p, "name_hint") else str(p.name), p.ty, axis)
              for p, axis in zip(one.params, axes["inputs"])]
    outputs = [("output_%d" % i, kind, axis)
               for i, (kind, axis) in enumerate(zip(results, axes["outputs"]))]

    def variables(what, n):
        return [relax.Var(name, relax.TensorType(_shape(kind, axis, n), kind.dtype))
                for name, kind, axis in what]

    sample = tvm.ir.GlobalVar("sample")
    made = tvm.IRModule({variable: function for variable, function in module.functions.items()
                         if variable.name_hint != "main"})
    made[sample] = one.without_attr("global_symbol")
    relax.expr._update_type(sample, one.ty)
    samples = tvm.ir.GlobalVar("samples")
    n = tvm.tirx.Var("n", "int64")
    made[samples] = _samples(tvm, variables(inputs, n), variables(outputs, n), one, sample, samples,
                             is_tuple)
    n = tvm.tirx.Var("n", "int64")
    given, wanted = variables(inputs, n), variables(outputs, n)
    done = relax.Var("done", wanted[0].ty)
    bindings = [(v, relax.op.builtin.alloc_tensor(v.ty.shape, str(v.ty.dtype), 0)) for v in wanted]
    bindings.append((done, relax.Call(samples, [*given, *wanted, relax.ShapeExpr([0, n])])))
    result = relax.Tuple(wanted) if is_tuple else wanted[0]
    kind = relax.TupleType([v.ty for v in wanted]) if is_tuple else wanted[0].ty
    made[tvm.ir.GlobalVar("main")] = relax.Function(
        given, _sequence(bindings, result), kind, is_pure=False).with_attr("global_symbol", "main")
    path = folder / "samples.o"
    c_to_object(VALUES + FAIL + _C_SOURCE, target_flags(dict(target.attrs)), path)
    code.objects.append(str(path))
    return relax.transform.Normalize()(made)


def _samples(tvm, inputs, outputs, one, sample, samples, is_tuple):
    """(inputs, outputs, bounds): writes the outputs of the samples between bounds, and gives the
    first output, since a machine knows no call without a result."""
    from tvm import relax

    first, end = tvm.tirx.Var("first", "int64"), tvm.tirx.Var("end", "int64")
    bounds = relax.Var("bounds", relax.ShapeType([first, end]))
    number = relax.expr.prim_value
    answer = outputs[0]

    relax.expr._update_type(samples, relax.FuncType(
        [variable.ty for variable in (*inputs, *outputs, bounds)], answer.ty, False))
    several = relax.Var("several", relax.TensorType([], "bool"))
    middle = tvm.tirx.floordiv(first + end, 2)
    halves = [relax.Var(name, answer.ty) for name in ("lower", "upper")]
    parts = [relax.ShapeExpr([first, middle]), relax.ShapeExpr([middle, end])]
    then = _sequence([(half, relax.Call(samples, [*inputs, *outputs, part]))
                      for half, part in zip(halves, parts)], halves[1])

    taken = [relax.Var("sample_%d" % i, parameter.ty) for i, parameter in enumerate(one.params)]
    result = relax.Var("result", one.ret_ty)
    bindings = [(variable, relax.op.call_dps_packed(
        "run_model_take_sample", relax.Tuple([batch, number(first)]), variable.ty))
        for variable, batch in zip(taken, inputs)]
    bindings.append((result, relax.Call(sample, taken)))
    put = relax.ExternFunc("run_model_put_sample")
    for index, batch in enumerate(outputs):
        part = result
        if is_tuple:
            part = relax.Var("result_%d" % index, one.ret_ty.fields[index])
            bindings.append((part, relax.TupleGetItem(result, index)))
        bindings.append((relax.Var("put_%d" % index, relax.TupleType([])), relax.Call(
            put, [part, batch, number(first)], ty_args=[relax.TupleType([])])))
    otherwise = _sequence(bindings, answer)

    done = relax.Var("done", answer.ty)
    body = _sequence([(several, relax.op.call_dps_packed(
        "run_model_several", relax.Tuple([number(first), number(end)]), several.ty)),
        (done, relax.If(several, then, otherwise))], done)
    return relax.Function([*inputs, *outputs, bounds], body, answer.ty, is_pure=False)


def _shape(kind, axis, samples):
    shape = [int(extent) for extent in kind.shape.values]
    shape[axis] = samples if shape[axis] == 1 else samples * shape[axis]
    return shape


def _sequence(bindings, result):
    from tvm import relax

    return relax.SeqExpr([relax.BindingBlock([relax.VarBinding(*one) for one in bindings])], result)
