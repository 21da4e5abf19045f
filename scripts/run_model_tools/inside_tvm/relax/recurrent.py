"""ONNX's RNN, LSTM and GRU, which TVM's importer does not know: what is left after the products of
all inputs with their weights is a layer of our kernels, or for any number of steps a C function."""


from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.operators.onnx_converters import exchanged

C_SOURCE = """\
static inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  const float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const union { int bits; float value; } power = {((int)n + 127) << 23};
  return (p * r * r + r + 1.0f) * power.value;
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

static inline float hyperbolic_tangent(float x) {
  const float s = x * x;
  const float small = x + x * s * (-0.333333333f + s * (0.133333333f + s * (-0.0539682540f +
                                   s * 0.0218694885f)));
  const float large = 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f);
  return s < 0.04f ? small : large;
}

typedef float Sixteen __attribute__((vector_size(64), aligned(4), may_alias));

/* sums[0..count) += state * weights, rows of which lie `wide` numbers apart. */
static inline void multiply(float *sums, const float *state, const float *weights, long depth,
                            long wide, long count) {
  enum { TOGETHER = 4, WIDTH = 16 * TOGETHER };
  long j = 0;
  /* In registers, each in the same order as below. */
  for (; j + WIDTH <= count; j += WIDTH) {
    Sixteen some[TOGETHER];
    __builtin_memcpy(some, sums + j, sizeof some);
    for (long k = 0; k < depth; ++k) {
      const float factor = state[k];
      const Sixteen *row = (const Sixteen *)(weights + k * wide + j);
#pragma clang loop unroll(full)
      for (int i = 0; i < TOGETHER; ++i) some[i] += factor * row[i];
    }
    __builtin_memcpy(sums + j, some, sizeof some);
  }
  for (long k = 0; k < depth; ++k) {
    const float factor = state[k];
    const float *row = weights + k * wide;
    for (long i = j; i < count; ++i) sums[i] += factor * row[i];
  }
}

static const float *numbers(const Any *value) {
  return (const float *)data(tensor(value));
}

/* (products of the inputs [steps, batch, directions * gates * hidden], state and for LSTM cells
 * [directions, batch, hidden], weights [directions, hidden, gates * hidden], for GRU biases of the
 * hidden gate [directions, hidden], for the LSTM's variant peepholes [directions, 3 * hidden],
 * [all states, last state, for LSTM last cells]).  variant: of RNN with Relu, of LSTM with
 * peepholes, of GRU with the reset gate after the product. */
typedef struct {
  const Any *values;
  int inputs, gates, backwards, variant;
} Recurrent;

/* Each direction of each sample by itself. */
static int run_recurrent(int id, Group *group, void *of) {
  const Recurrent *call = of;
  const Any *values = call->values;
  const int inputs = call->inputs, gates = call->gates, variant = call->variant;
  const int states = gates == 4 ? 2 : 1;
  const Tensor *all = tensor(&values[inputs]);
  const long steps = all->shape[0], directions = all->shape[1], batch = all->shape[2];
  const long hidden = all->shape[3], wide = gates * hidden;
  const float *given = numbers(&values[0]);
  const float *weights = numbers(&values[gates == 4 ? 3 : 2]);
  float sums[wide], across[hidden];
  long one, end;
  share(id, group, directions * batch, &one, &end);
  for (; one < end; ++one) {
    const long d = one / batch, b = one % batch;
    const float *w = weights + d * hidden * wide;
    const long place = (d * batch + b) * hidden;
    float *state = (float *)numbers(&values[inputs + 1]) + place;
    float *cell = states == 2 ? (float *)numbers(&values[inputs + 2]) + place : 0;
    const float *peepholes = cell && variant ? numbers(&values[4]) + d * 3 * hidden : 0;
    __builtin_memcpy(state, numbers(&values[1]) + place, hidden * sizeof *state);
    if (cell) __builtin_memcpy(cell, numbers(&values[2]) + place, hidden * sizeof *cell);
    for (long s = 0; s < steps; ++s) {
      const long at = call->backwards || d ? steps - 1 - s : s;
      float *after = (float *)numbers(&values[inputs]) + at * directions * batch * hidden + place;
      const float *from = given + ((at * batch + b) * directions + d) * wide;
      if (gates == 1) {
        __builtin_memcpy(sums, from, wide * sizeof *sums);
        multiply(sums, state, w, hidden, wide, wide);
        for (long j = 0; j < hidden; ++j)
          state[j] = !variant ? hyperbolic_tangent(sums[j]) : sums[j] < 0.0f ? 0.0f : sums[j];
      } else if (gates == 4) {
        __builtin_memcpy(sums, from, wide * sizeof *sums);
        multiply(sums, state, w, hidden, wide, wide);
        for (long j = 0; peepholes && j < hidden; ++j) {
          sums[j] += peepholes[j] * cell[j];
          sums[2 * hidden + j] += peepholes[2 * hidden + j] * cell[j];
        }
        for (long j = 0; j < hidden; ++j) {
          cell[j] = sigmoid(sums[2 * hidden + j]) * cell[j] +
                    sigmoid(sums[j]) * hyperbolic_tangent(sums[3 * hidden + j]);
          if (peepholes) sums[hidden + j] += peepholes[hidden + j] * cell[j];
          state[j] = sigmoid(sums[hidden + j]) * hyperbolic_tangent(cell[j]);
        }
      } else {
        __builtin_memcpy(sums, from, 2 * hidden * sizeof *sums);
        multiply(sums, state, w, hidden, wide, 2 * hidden);
        for (long j = 0; j < 2 * hidden; ++j) sums[j] = sigmoid(sums[j]);
        const float *bias = numbers(&values[3]) + d * hidden;
        float *reset = sums + hidden;
        if (variant) {
          __builtin_memcpy(across, bias, hidden * sizeof *across);
          multiply(across, state, w + 2 * hidden, hidden, wide, hidden);
          for (long j = 0; j < hidden; ++j) across[j] *= reset[j];
        } else {
          for (long j = 0; j < hidden; ++j) reset[j] *= state[j];
          __builtin_memcpy(across, bias, hidden * sizeof *across);
          multiply(across, reset, w + 2 * hidden, hidden, wide, hidden);
        }
        for (long j = 0; j < hidden; ++j) {
          const float fresh = hyperbolic_tangent(from[2 * hidden + j] + across[j]);
          state[j] = fresh + sums[j] * (state[j] - fresh);
        }
      }
      __builtin_memcpy(after, state, hidden * sizeof *state);
    }
  }
  return 0;
}

static int recurrent(const Any *values, int inputs, int gates, int backwards, int variant) {
  Recurrent call = {values, inputs, gates, backwards, variant};
  return launch(run_recurrent, &call);
}

#define RECURRENT(NAME, INPUTS, GATES, BACKWARDS, VARIANT)                                    \\
  EXPORTED __tvm_ffi_run_model_##NAME(void *self, const Any *values, int count, Any *result) { \\
    (void)self, (void)result;                                                                 \\
    for (int i = 0; i < count; ++i) {                                                         \\
      if (!tensor(&values[i])) return refuse();                                               \\
    }                                                                                         \\
    return count == INPUTS + (GATES == 4 ? 3 : 2)                                             \\
               ? recurrent(values, INPUTS, GATES, BACKWARDS, VARIANT) : refuse();             \\
  }
#define BOTH_WAYS(NAME, INPUTS, GATES, VARIANT)   \\
  RECURRENT(NAME, INPUTS, GATES, 0, VARIANT)      \\
  RECURRENT(NAME##_backwards, INPUTS, GATES, 1, VARIANT)
BOTH_WAYS(rnn, 3, 1, 0)
BOTH_WAYS(rnn_relu, 3, 1, 1)
BOTH_WAYS(lstm, 4, 4, 0)
BOTH_WAYS(lstm_peepholes, 5, 4, 1)
BOTH_WAYS(gru, 4, 3, 0)
BOTH_WAYS(gru_reset_after, 4, 3, 1)
"""
"""To follow the definitions of open_sizes.py."""


def installed(isa=None):
    """While it is open, TVM's importer takes such nodes; with an instruction set, LSTM and GRU of a
    number of steps that is known become layers of our kernels."""
    from tvm.relax.frontend.onnx import onnx_frontend

    kinds = ("rnn", "lstm", "gru") if isa is None else ("lstm", "gru")
    return exchanged(onnx_frontend, lambda known: {
        **known, **{kind.upper(): _converter(kind, isa) for kind in kinds}})


def _converter(kind, isa):
    from tvm.relax.frontend.onnx import onnx_frontend

    class Recurrent(onnx_frontend.OnnxOpConverter):
        @classmethod
        def _impl_v1(cls, bb, inputs, attr, params):
            given = [inputs[i] if i < len(inputs) else None for i in range(8)]
            return (_function(kind, bb, given, attr) if isa is None
                    else _layer(kind, isa, bb, given, attr))

    return Recurrent


def _layer(kind, isa, bb, given, attributes):
    """The outputs of a node that onnx_repair/rules/recurrent.py left for the kernels."""
    import numpy as np
    from tvm import relax

    from run_model_tools.kernels.recurrent import made_of_onnx
    from run_model_tools.kernels.relax.made_layers import call

    x, w, r, b, _, h, c, _ = given
    x = bb.normalize(x)
    steps, batch, size = (int(e) for e in x.ty.shape.values)
    w, r = w.value.numpy(), r.value.numpy()
    layer, bias = made_of_onnx(kind, steps, batch, r, None if b is None else b.value.numpy(),
                               _direction(attributes) == "reverse", isa)
    flat = bb.emit(relax.op.reshape(x, (steps * batch, size)))
    products = bb.emit(relax.op.matmul(flat, _constant(w.reshape(-1, size).T)))
    products = bb.emit(relax.op.add(products, _constant(bias)))
    shape = (r.shape[0], batch, r.shape[2])
    states = [_constant(np.zeros(shape)) if state is None else state
              for state in ([h, c] if kind == "lstm" else [h])]
    made = bb.emit(call(layer, [
        bb.emit(relax.op.reshape(products, (steps, batch, bias.size))), *states]))

    def part(first, last):
        return bb.emit(relax.op.strided_slice(made, [0], [first], [last]))

    return relax.Tuple([part(0, steps)] + [
        bb.emit(relax.op.reshape(part(steps + i, steps + i + 1), shape))
        for i in range(len(states))])


def _direction(attributes):
    direction = attributes.get("direction", "forward")
    return (direction.decode() if isinstance(direction, bytes) else str(direction)).lower()


def _function(kind, bb, given, attributes):
    """The outputs of a node of any number of steps, by the functions of C_SOURCE."""
    import numpy as np
    from tvm import relax

    from run_model_tools.kernels.recurrent import biases

    x, w, r, b, lengths, h, c, peepholes = given
    if lengths is not None or not all(
            hasattr(v, "value") for v in (w, r, *(v for v in (b, peepholes) if v is not None))):
        raise Refusal("model", "a recurrent layer of open length has weights that are computed, or "
                               "lengths, which is not possible here")
    x = bb.normalize(x)
    steps, batch, size = (int(e) for e in x.ty.shape.values)
    w, r = w.value.numpy(), r.value.numpy()
    count, hidden = r.shape[0], r.shape[2]
    if r.dtype != np.float32 or hidden > 4096:
        raise Refusal("model", "a recurrent layer of open length computes with %s and %d numbers, "
                               "which is not possible here" % (r.dtype, hidden))
    of_inputs, alone = biases(kind, None if b is None else b.value.numpy(), r.shape)
    product = bb.emit(relax.op.matmul(x, _constant(w.reshape(-1, size).T)))
    product = bb.emit(relax.op.add(product, _constant(of_inputs)))
    zeros = np.zeros((count, 1, hidden), np.float32)

    def state(value):
        if value is None:
            return bb.emit(relax.op.broadcast_to(_constant(zeros), (count, batch, hidden)))
        return value

    arguments = [product, state(h)] + ([state(c)] if kind == "lstm" else [])
    arguments.append(_constant(r.transpose(0, 2, 1)))
    if kind == "gru":
        arguments.append(_constant(alone))
    name = "run_model_" + kind
    if kind == "gru" and int(attributes.get("linear_before_reset", 0)):
        name += "_reset_after"
    if kind == "rnn" and attributes.get("activations"):
        name += "_relu"
    if peepholes is not None:
        arguments.append(_constant(peepholes.value.numpy()))
        name += "_peepholes"
    if _direction(attributes) == "reverse":
        name += "_backwards"
    one = relax.TensorType((count, batch, hidden), "float32")
    results = [relax.TensorType((steps, count, batch, hidden), "float32"), one]
    if kind == "lstm":
        results.append(one)
    made = bb.emit(relax.call_dps_packed(name, relax.Tuple(arguments), results))
    return relax.Tuple([bb.emit(relax.TupleGetItem(made, i)) for i in range(len(results))])


def _constant(array):
    import numpy as np
    from tvm import relax

    return relax.const(np.ascontiguousarray(array, np.float32), "float32")
