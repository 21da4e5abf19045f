"""The zoo's networks, each a function from weights to ONNX (opset 13)."""

from __future__ import annotations

from functools import partial
from typing import Callable

import onnx

from run_model_tools.zoo.networks import (
    efficientnet_lite0,
    mobilenet_v2,
    resnet18,
    shufflenet_v1,
    shufflenet_v2,
    squeezenet1_1,
    yoeo,
)

# An architecture's name in the manifest -> what builds it from weights, under a model's name.
BUILDERS: dict[str, Callable[..., onnx.ModelProto]] = {
    "resnet18": resnet18.build,
    "squeezenet1_1": squeezenet1_1.build,
    "squeezenet1_1_logits": partial(squeezenet1_1.build, softmax=False),
    "mobilenet_v2": mobilenet_v2.build,
    "shufflenet_v1_x0_5_g3": partial(shufflenet_v1.build, width="0.5x"),
    "shufflenet_v1_x1_0_g3": partial(shufflenet_v1.build, width="1.0x"),
    "shufflenet_v2_x1_0": shufflenet_v2.build,
    "efficientnet_lite0": efficientnet_lite0.build,
    "yoeo": yoeo.build,
    "yoeo_field": partial(yoeo.build, width=yoeo.FIELD_WIDTH, anchors=yoeo.FIELD_ANCHORS),
}
