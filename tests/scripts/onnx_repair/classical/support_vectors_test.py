"""Support vector machines (ai.onnx.ml) against ONNX Runtime."""

from __future__ import annotations

import pytest
from repaired_models import matches, noise

ML = "ai.onnx.ml"


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kind):
    vectors = {"n_supports": 5, "support_vectors": [float(n) for n in noise(20)],
               "coefficients": [float(n) for n in noise(5)], "rho": [0.3],
               "kernel_type": kind, "kernel_params": [0.2, 0.5, 3.0]}
    matches("SVMRegressor", [noise(6, 4)], domain=ML, **vectors)
    matches("SVMRegressor", [noise(6, 4)], domain=ML, **{
        **vectors, "n_supports": 0, "coefficients": [float(n) for n in noise(4)]})


@pytest.mark.parametrize("kind", ["RBF", "LINEAR", "POLY", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_support_vector_classifiers(kind, classes, transform):
    owned = [2, 1, 3, 2][:classes]
    pairs = classes * (classes - 1) // 2
    matches("SVMClassifier", [noise(9, 4)], domain=ML, outputs=2, kernel_type=kind,
            kernel_params=[0.2, 0.5, 3.0], vectors_per_class=owned, post_transform=transform,
            support_vectors=[float(n) for n in noise(4 * sum(owned))],
            coefficients=[float(n) for n in noise((classes - 1) * sum(owned))],
            rho=[float(n) for n in noise(pairs)], classlabels_ints=[7, 3, 5, 11][:classes])
    if classes > 2 and kind == "LINEAR":
        matches("SVMClassifier", [noise(9, 4)], domain=ML, outputs=2, post_transform=transform,
                coefficients=[float(n) for n in noise(4 * classes)], rho=[0.3],
                kernel_type=kind, kernel_params=[0.2, 0.5, 3.0],
                classlabels_ints=[7, 3, 5, 11][:classes])


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX"])
def test_probabilities_of_support_vector_classifiers(classes, transform):
    """Also where the machines between two classes are sure of what contradicts each other."""
    pairs = classes * (classes - 1) // 2
    for scale in (1, 30):
        matches("SVMClassifier", [noise(40, 4)], domain=ML, outputs=2, kernel_type="LINEAR",
                kernel_params=[0.0, 0.0, 0.0], vectors_per_class=[2] * classes,
                support_vectors=[float(n) for n in noise(8 * classes)],
                coefficients=[float(scale * n) for n in noise((classes - 1) * 2 * classes)],
                rho=[float(n) for n in noise(pairs)], post_transform=transform,
                prob_a=[-float(n) for n in noise(pairs) ** 2],
                prob_b=[float(n) for n in noise(pairs)],
                classlabels_ints=[7, 3, 5, 11, 2][:classes])
