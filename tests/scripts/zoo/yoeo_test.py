"""YOEO: the published sizes of its parts, and rows decoded as YOLO v3 has them."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from run_model_tools.zoo.networks import yoeo
from run_model_tools.zoo.networks.weights import Kind, Seeded


class Recorder(Seeded):
    def __init__(self) -> None:
        super().__init__(1)
        self.sizes: dict[str, int] = {}

    def take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
        array = super().take(name, kind, shape)
        self.sizes[name] = array.size
        return array


def test_encoder_and_boxes_are_yolo_v4_tiny() -> None:
    """Darknet's file of weights for COCO's 80 classes, yolov4-tiny.weights, has 24251276 bytes: a
    header of 20, and a float32 for each number of the network."""
    weights = Recorder()
    yoeo.build(weights, classes=80)
    count = sum(size for name, size in weights.sizes.items()
                if not name.startswith("segmentation."))
    assert count * 4 + 20 == 24_251_276


def test_rows_and_areas_are_decoded(tmp_path) -> None:
    """From the tensors before they are decoded, which are made outputs, in float64."""
    model = yoeo.build(Seeded(3), width=0.25, anchors=yoeo.FIELD_ANCHORS, size=128)
    for name in ("detection.coarse.raw", "detection.fine.raw", "segmentation.scores"):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    picture = np.random.default_rng(1).random((1, 3, 128, 128)).astype(np.float32)
    rows, areas, coarse, fine, scores = session.run(None, {yoeo.INPUT: picture})
    assert rows.shape == (1, 3 * (16 + 64), 8) and areas.dtype == np.uint8
    np.testing.assert_array_equal(areas, scores.argmax(1))

    expected = []
    for raw, anchors in ((coarse, yoeo.FIELD_ANCHORS[0]), (fine, yoeo.FIELD_ANCHORS[1])):
        side = raw.shape[2]
        values = raw.astype(np.float64).reshape(3, 8, side, side)
        for anchor in range(3):
            for row in range(side):
                for column in range(side):
                    t = values[anchor, :, row, column]
                    s = 1 / (1 + np.exp(-t))
                    expected.append([(s[0] + column) * 128 / side, (s[1] + row) * 128 / side,
                                     np.exp(t[2]) * anchors[anchor][0],
                                     np.exp(t[3]) * anchors[anchor][1], *s[4:]])
    np.testing.assert_allclose(rows[0], expected, rtol=2e-5, atol=2e-5)


def test_both_outputs_depend_on_the_picture() -> None:
    """Of the seeded network in its full width: signals neither die nor grow, and every area is
    somewhere."""
    session = onnxruntime.InferenceSession(yoeo.build(Seeded(1)).SerializeToString())
    random = np.random.default_rng(2)
    results = [session.run(None, {yoeo.INPUT: random.random((1, 3, 416, 416)).astype(np.float32)})
               for _ in range(2)]
    for rows, areas in results:
        assert rows.shape == (1, 2535, 8) and areas.shape == (1, 416, 416)
        assert np.isfinite(rows).all() and rows[0, :, 4:].std(0).min() > 0.05
        assert np.bincount(areas.ravel(), minlength=3).min() > 1000
    assert np.abs(results[0][0][..., 4:] - results[1][0][..., 4:]).max() > 0.1
    assert np.mean(results[0][1] != results[1][1]) > 0.01
