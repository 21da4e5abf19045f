"""Networks of bytes as ONNX Runtime's quantisation writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from run_model_tools.zoo.modern.exporting.networks import Network, sample

_CALIBRATION_INPUTS = 8


class _Inputs(CalibrationDataReader):
    """The same inputs every time, by seeds that no test uses."""

    def __init__(self, network: Network) -> None:
        self._left = iter([{item.name: tensor.numpy() for item, tensor in zip(
            network.inputs, sample(network, 100 + i))} for i in range(_CALIBRATION_INPUTS)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


def quantise(path: Path, network: Network) -> None:
    """Puts QuantizeLinear and DequantizeLinear around the layers of a float32 network's file, with
    scales that were seen; "dynamic": operators of bytes after DynamicQuantizeLinear."""
    prepared = path.with_suffix(".prepared.onnx")
    quant_pre_process(str(path), str(prepared))
    if network.quantise == "dynamic":
        quantize_dynamic(str(prepared), str(path))
    else:
        quantize_static(str(prepared), str(path), _Inputs(network), quant_format=QuantFormat.QDQ,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        per_channel=True)
    prepared.unlink()
