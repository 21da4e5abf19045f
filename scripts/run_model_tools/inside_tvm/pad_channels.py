"""Gives convolutions whose number of channels fits no vector register a few more: zeros.

ShuffleNet v2 has 58, 116 and 232 channels.  TVM's schedules for x86 cut channels into blocks of
equal size, and the divisors of 58 are 2, 29 and 58: a register of 16 numbers is mostly empty.  With
64 channels, six of them computed from weights that are zero, all are full.  What reads such a
channel multiplies it by zero, or gets only the real ones through a Slice, so results change by
nothing but the order of additions.

It is done to the ONNX model, before TVM reads it.
"""

import numpy as np

# More zeros than this share of the channels cost more than full registers gain, and networks as
# narrow as that are not slow.
MOST_WASTE = 0.15
FEWEST_CHANNELS = 32

# Work on each channel alone and leave the number of channels as it is; which values the added
# channels get does not matter.  A Clip's or Relu's zeros stay finite.
_CHANNELWISE = ("Relu", "Clip", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")


def lanes_of(target, features):
    """float32 numbers in a register, for targets where padding pays (x86-64), else 0.

    `features`: what LLVM may use, by its names; None where TVM does not tell.
    """
    if target.kind.name != "llvm" or features is None:
        return 0
    return 16 if "avx512f" in features else 8 if "avx2" in features else 0


def padded_channels(channels, lanes):
    """The next multiple of `lanes`, or `channels` where that is too far."""
    wanted = -(-channels // lanes) * lanes
    if channels < FEWEST_CHANNELS or wanted - channels > MOST_WASTE * channels:
        return channels
    return wanted


def pad_channels(model, lanes):
    """Changes an onnx.ModelProto in place; gives the number of convolutions that got more channels.

    Convolutions are left alone where their weights are no float32 initializers.
    """
    return _Padding(model, lanes).run() if lanes else 0


class _Padding:
    def __init__(self, model, lanes):
        self.graph = model.graph
        self.lanes = lanes
        self.opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
                         or [1])
        self.weights = {w.name: w for w in self.graph.initializer}
        self.names = set(self.weights)
        for node in self.graph.node:
            self.names.update(node.input)
            self.names.update(node.output)
        self.padded = {}  # tensor -> (channels that it had, channels that it has)
        self.sliced = {}  # tensor -> the tensor with the channels that it had
        self.nodes = []
        self.count = 0

    def run(self):
        outputs = {output.name for output in self.graph.output}
        for node in self.graph.node:
            source = node.input[0] if node.input else ""
            if node.op_type == "Conv" and self._plain_conv(node):
                # An output of the model keeps its channels.
                self._conv(node, may_grow=not outputs.intersection(node.output))
            elif (node.op_type == "BatchNormalization" and source in self.padded
                  and len(node.output) == 1 and not outputs.intersection(node.output)
                  and all(name in self.weights for name in node.input[1:5])):
                self._batch_normalization(node)
            elif (node.op_type in _CHANNELWISE and source in self.padded and len(node.output) == 1
                  and not outputs.intersection(node.output)):
                self.padded[node.output[0]] = self.padded[source]
            else:
                for i, name in enumerate(node.input):
                    if name in self.padded:
                        node.input[i] = self._slice(name)
            self.nodes.append(node)
        if self.count:
            del self.graph.node[:]
            self.graph.node.extend(self.nodes)
            used = {name for node in self.nodes for name in node.input}
            weights = [w for w in self.graph.initializer if w.name in used]
            del self.graph.initializer[:]
            self.graph.initializer.extend(weights)
            inputs = [i for i in self.graph.input if i.name in used or i.name not in self.weights]
            del self.graph.input[:]
            self.graph.input.extend(inputs)
            kept = [v for v in self.graph.value_info if v.name not in self.padded]
            del self.graph.value_info[:]
            self.graph.value_info.extend(kept)
        return self.count

    def _plain_conv(self, node):
        from onnx import TensorProto

        tensors = [self.weights.get(name) for name in node.input[1:] if name]
        return all(t is not None and t.data_type == TensorProto.FLOAT
                   for t in tensors) and bool(tensors)

    def _conv(self, node, may_grow):
        from onnx import numpy_helper

        groups = next((a for a in node.attribute if a.name == "group"), None)
        group = groups.i if groups is not None else 1
        weight = numpy_helper.to_array(self.weights[node.input[1]])
        source = node.input[0]
        channels = weight.shape[0]
        depthwise = group == channels and weight.shape[1] == 1 and group > 1
        added = 0
        if depthwise and may_grow:
            if source in self.padded:
                added = self.padded[source][1] - channels
                groups.i = channels + added
        elif group == 1:
            if source in self.padded:
                extra = self.padded[source][1] - weight.shape[1]
                weight = np.pad(weight, [(0, 0), (0, extra)] + [(0, 0)] * (weight.ndim - 2))
            if may_grow:
                added = padded_channels(channels, self.lanes) - channels
        elif source in self.padded:
            node.input[0] = self._slice(source)
        if not added:
            if group == 1 and source in self.padded:
                self._set_weight(node, 1, weight)
            return
        self._set_weight(node, 1, np.pad(weight, [(0, added)] + [(0, 0)] * (weight.ndim - 1)))
        if len(node.input) > 2 and node.input[2]:
            bias = numpy_helper.to_array(self.weights[node.input[2]])
            self._set_weight(node, 2, np.pad(bias, [(0, added)]))
        self.padded[node.output[0]] = (channels, channels + added)
        self.count += 1

    def _batch_normalization(self, node):
        from onnx import numpy_helper

        added = self.padded[node.input[0]][1] - self.padded[node.input[0]][0]
        # Scale, bias, mean and variance, which is divided by.
        for index, value in ((1, 0), (2, 0), (3, 0), (4, 1)):
            values = numpy_helper.to_array(self.weights[node.input[index]])
            self._set_weight(node, index, np.pad(values, [(0, added)], constant_values=value))
        self.padded[node.output[0]] = self.padded[node.input[0]]

    def _set_weight(self, node, index, values):
        """A weight of this node's own: another one may share the initializer."""
        from onnx import numpy_helper

        name = self._new_name(node.input[index])
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.graph.initializer.append(tensor)
        self.weights[name] = tensor
        node.input[index] = name

    def _slice(self, name):
        """The tensor's real channels."""
        from onnx import helper, numpy_helper

        if name not in self.sliced:
            channels = self.padded[name][0]
            result = self._new_name(name)
            if self.opset < 10:
                node = helper.make_node("Slice", [name], [result], axes=[1], starts=[0],
                                        ends=[channels])
            else:
                inputs = [name]
                for what, value in (("starts", 0), ("ends", channels), ("axes", 1)):
                    inputs.append(self._new_name("%s/%s" % (name, what)))
                    self.graph.initializer.append(
                        numpy_helper.from_array(np.array([value], np.int64), inputs[-1]))
                node = helper.make_node("Slice", inputs, [result])
            self.nodes.append(node)
            self.sliced[name] = result
        return self.sliced[name]

    def _new_name(self, name):
        number = 0
        while "%s/padded%d" % (name, number) in self.names:
            number += 1
        name = "%s/padded%d" % (name, number)
        self.names.add(name)
        return name
