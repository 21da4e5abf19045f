"""Which networks are exported how: the list that artifacts/modern is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import timm
import torch
import torchvision
from torch import Tensor, nn

from run_model_tools.zoo.modern.exporting import own_networks

OWN = ("run_model", "Apache-2.0")
TORCHVISION = ("torchvision", "BSD-3-Clause")
TIMM = ("timm", "Apache-2.0")
TRANSFORMERS = ("transformers", "Apache-2.0")


@dataclass(frozen=True)
class Input:
    """high: whole numbers in [0, high); 0: values of a normal distribution."""

    name: str
    shape: tuple[int, ...]
    high: int = 0

    def tensor(self, seed: int) -> Tensor:
        random = torch.Generator().manual_seed(seed)
        if self.high:
            return torch.randint(self.high, self.shape, generator=random)
        return torch.randn(self.shape, generator=random)


@dataclass(frozen=True)
class Network:
    """source: the package that has it, and its licence. exporter: "old" or "new". opset None: no
    options at all. half: in float16. quantise: by ONNX Runtime, after it was exported, "static" or
    "dynamic"."""

    make: Callable[[], nn.Module]
    inputs: tuple[Input, ...]
    source: tuple[str, str]
    exporter: str
    opset: int | None
    dynamic_batch: bool = False
    half: bool = False
    quantise: str = ""
    tolerance: float = 0
    """Of outputs, if it is more than that of the arithmetic: of a chain of roundings ONNX Runtime
    with and without its fusions makes outputs that differ by a tenth of the largest value."""
    note: str = ""

    @property
    def is_new(self) -> bool:
        return self.exporter == "new"


def _vision(name: str, **options: object) -> Callable[[], nn.Module]:
    return lambda: torchvision.models.get_model(name, weights=None, **options)


def _timm(name: str, **options: object) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, pretrained=False, **options)


def _repvgg() -> nn.Module:
    model = timm.create_model("repvgg_a0", pretrained=False).eval()
    return timm.utils.reparameterize_model(model)


class _FirstOutput(nn.Module):
    def __init__(self, model: nn.Module, key: str) -> None:
        super().__init__()
        self.model = model
        self.key = key

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)[self.key]


def _segmentation(name: str) -> Callable[[], nn.Module]:
    return lambda: _FirstOutput(torchvision.models.get_model(
        name, weights=None, weights_backbone=None, aux_loss=None), "out")


class _Detections(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.model([picture[0]])[0]
        return found["boxes"], found["scores"], found["labels"]


def _ssdlite() -> nn.Module:
    return _Detections(torchvision.models.get_model(
        "ssdlite320_mobilenet_v3_large", weights=None, weights_backbone=None))


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig(
                hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                intermediate_size=1024), add_pooling_layer=True)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
            found = self.model(input_ids=input_ids, attention_mask=attention_mask)
            return found.last_hidden_state, found.pooler_output

    return Bert()


def picture(size: int = 224, batch: int = 1) -> tuple[Input, ...]:
    return (Input("input", (batch, 3, size, size)),)


_TOKENS = (Input("input_ids", (1, 64), 30522), Input("attention_mask", (1, 64), 2))
_SMALL = "the family takes any size; 256 instead of 520 keeps tests short"

NETWORKS: dict[str, Network] = {
    # As torch.onnx.export(model, (x,), path) writes them.
    "resnet18-default": Network(_vision("resnet18"), picture(), TORCHVISION, "new", None),
    "mobilenet_v2-default": Network(_vision("mobilenet_v2"), picture(), TORCHVISION, "new", None),
    "shufflenet_v2-default": Network(_vision("shufflenet_v2_x1_0"), picture(), TORCHVISION,
                                     "new", None),
    "squeezenet1_1-default": Network(_vision("squeezenet1_1"), picture(), TORCHVISION,
                                     "new", None),
    # Classifiers.
    "mobilenet_v3_large-old17": Network(_vision("mobilenet_v3_large"), picture(), TORCHVISION,
                                        "old", 17),
    "mobilenet_v3_small-new18": Network(_vision("mobilenet_v3_small"), picture(), TORCHVISION,
                                        "new", 18),
    "efficientnet_v2_s-new20": Network(_vision("efficientnet_v2_s"), picture(), TORCHVISION,
                                       "new", 20, note="224 instead of 384, which it allows"),
    "efficientnet_b0-old18": Network(_timm("efficientnet_b0"), picture(), TIMM, "old", 18),
    "convnext_tiny-new20": Network(_vision("convnext_tiny"), picture(), TORCHVISION, "new", 20),
    "regnet_y_400mf-old17": Network(_vision("regnet_y_400mf"), picture(), TORCHVISION, "old", 17),
    "densenet121-new19": Network(_vision("densenet121"), picture(), TORCHVISION, "new", 19),
    "mnasnet1_0-old19": Network(_vision("mnasnet1_0"), picture(), TORCHVISION, "old", 19),
    "ghostnet_100-new20": Network(_timm("ghostnet_100"), picture(), TIMM, "new", 20),
    "repvgg_a0-new18": Network(_repvgg, picture(), TIMM, "new", 18,
                               note="branches joined, as it is deployed"),
    # Attention and mixing.
    "vit_tiny-new20": Network(_timm("vit_tiny_patch16_224"), picture(), TIMM, "new", 20),
    "deit_tiny-old17": Network(_timm("deit_tiny_patch16_224"), picture(), TIMM, "old", 17),
    "swin_tiny-new20": Network(_vision("swin_t"), picture(), TORCHVISION, "new", 20),
    "mobilevit_xxs-new20": Network(_timm("mobilevit_xxs"), picture(256), TIMM, "new", 20),
    "mixer_s32-new18": Network(_timm("mixer_s32_224"), picture(), TIMM, "new", 18),
    "bert_mini-new20": Network(_bert, _TOKENS, TRANSFORMERS, "new", 20,
                               note="4 layers of 256, 64 tokens"),
    # Sequences and sound.
    "lstm_gru-old17": Network(own_networks.Recurrent, (Input("x", (1, 50, 40)),), OWN, "old", 17),
    "lstm_gru-new20": Network(own_networks.Recurrent, (Input("x", (1, 50, 40)),), OWN, "new", 20),
    "audio_conv1d-new20": Network(own_networks.AudioClassifier, (Input("wave", (1, 1, 16000)),),
                                  OWN, "new", 20),
    # Dense outputs and detection.
    "unet-old17": Network(own_networks.UNet, picture(256), OWN, "old", 17),
    "unet_bilinear-new20": Network(lambda: own_networks.UNet(bilinear=True), picture(256), OWN,
                                   "new", 20),
    "deeplabv3_mobilenet-new20": Network(_segmentation("deeplabv3_mobilenet_v3_large"),
                                         picture(256), TORCHVISION, "new", 20, note=_SMALL),
    "lraspp_mobilenet-old17": Network(_segmentation("lraspp_mobilenet_v3_large"), picture(256),
                                      TORCHVISION, "old", 17, note=_SMALL),
    "ssdlite320-old17": Network(_ssdlite, picture(320), TORCHVISION, "old", 17,
                                note="with its post-processing: NonMaxSuppression inside"),
    # Over three axes.
    "volume_unet-new20": Network(own_networks.VolumeUNet, (Input("volume", (1, 1, 24, 48, 48)),),
                                 OWN, "new", 20),
    "video-old17": Network(own_networks.VideoClassifier, (Input("pictures", (1, 3, 8, 112, 112)),),
                           OWN, "old", 17),
    "detector-new20": Network(own_networks.Detector, picture(320), OWN, "new", 20),
    "detector-old17": Network(own_networks.Detector, picture(320), OWN, "old", 17),
    # Other types, batches.
    "resnet18_qdq-old17": Network(_vision("resnet18"), picture(), TORCHVISION, "old", 17,
                                  quantise="static"),
    "bert_mini_qdq-old17": Network(_bert, _TOKENS, TRANSFORMERS, "old", 17, quantise="static",
                                   tolerance=0.2, note="4 layers of 256, 64 tokens"),
    "bert_mini_bytes-old17": Network(_bert, _TOKENS, TRANSFORMERS, "old", 17, quantise="dynamic",
                                     tolerance=0.1,
                                     note="4 layers of 256, 64 tokens, quantised as they come"),
    "mobilenet_v2_fp16-new20": Network(_vision("mobilenet_v2"), picture(), TORCHVISION, "new", 20,
                                       half=True),
    "mobilenet_v3_small_fp16-old17": Network(_vision("mobilenet_v3_small"), picture(), TORCHVISION,
                                             "old", 17, half=True),
    "resnet18_batch4-new20": Network(_vision("resnet18"), picture(batch=4), TORCHVISION,
                                     "new", 20),
    "mobilenet_v2_dynamic-old17": Network(_vision("mobilenet_v2"), picture(), TORCHVISION,
                                          "old", 17, dynamic_batch=True),
    "resnet18_dynamic-new20": Network(_vision("resnet18"), picture(), TORCHVISION, "new", 20,
                                      dynamic_batch=True),
    # One network at every opset: the old exporter writes up to 20, the new one from 18 on.
    **{f"shufflenet_v2-old{opset}": Network(_vision("shufflenet_v2_x1_0"), picture(), TORCHVISION,
                                            "old", opset) for opset in range(11, 18)},
    **{f"shufflenet_v2-new{opset}": Network(_vision("shufflenet_v2_x1_0"), picture(), TORCHVISION,
                                            "new", opset) for opset in (18, 19, 21, 22)},
}

#: Keeps the stack traces that the new exporter puts on every node.
WITH_TRACES = "squeezenet1_1-default"


def versions() -> dict[str, str]:
    from importlib.metadata import version
    return {name: version(name) for name in
            ("torch", "torchvision", "timm", "transformers", "onnxscript", "onnx", "onnxruntime")}


def sample(network: Network, seed: int) -> tuple[Tensor, ...]:
    """Inputs of the seed; a mask of tokens has all of them."""
    found = [torch.ones(i.shape, dtype=torch.int64) if i.high == 2 else i.tensor(seed)
             for i in network.inputs]
    return tuple(t.half() if network.half and t.is_floating_point() else t for t in found)
