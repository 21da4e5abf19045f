"""Steps before and after networks, as scikit-learn's converter writes them (ai.onnx.ml)."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import check, matches, noise, one, repaired

from run_model_tools.errors import ToolError

ML = "ai.onnx.ml"


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_models(how):
    rows = [float(number) for number in noise(12)]
    matches("LinearClassifier", [noise(4, 4)], outputs=2, domain=ML, coefficients=rows,
            intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 9, 8], post_transform=how)
    matches("LinearRegressor", [noise(4, 4)], domain=ML, coefficients=rows, targets=3,
            intercepts=[0.1, 0.2, 0.3])


def test_linear_models_of_another_form_are_refused():
    model, inputs = one("LinearClassifier", [noise(2, 4)], outputs=2, domain=ML, intercepts=[0.1],
                        coefficients=[1.0, 2.0, 3.0, 4.0], classlabels_ints=[0, 1])
    with pytest.raises(ToolError, match="not as many rows of coefficients as classes"):
        repaired(model, inputs)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalised(norm):
    matches("Normalizer", [np.float32([[1, -2, 3, -4], [-1, -2, -3, -0.5], [0, 0, 0, 0]])],
            domain=ML, norm=norm)


def test_missing_numbers_are_filled_in():
    x = np.float32([[1, np.nan, 2], [np.nan, 1, 1]])
    matches("Imputer", [x], domain=ML, imputed_value_floats=[5.0, 6.0, 7.0],
            replaced_value_float=float("nan"))
    matches("Imputer", [np.array([[1, 0, 2]])], domain=ML, imputed_value_int64s=[5, 6, 7],
            replaced_value_int64=0)
    matches("FeatureVectorizer", [noise(2, 3), noise(2, 1)], domain=ML, inputdimensions=[3, 1])


def test_categories():
    matches("OneHotEncoder", [np.array([[1, 5], [3, 1]])], domain=ML, cats_int64s=[5, 1, 2],
            zeros=1)


@pytest.mark.parametrize("keys, values, version", [
    ({"keys_int64s": [4, 9, 9, -2]}, {"values_floats": [0.5, 1.5, 2.5, 3.5]}, 2),
    ({"keys_int64s": [4, 2**63 - 1, -2**63]}, {"values_floats": [0.5, 1.5, 2.5]}, 2),
    ({"keys_int64s": [4, 1 << 40, -2]}, {"values_int64s": [7, 8, 9], "default_int64": 5}, 3),
    ({"keys_floats": [4.0, float("nan"), -2.5]}, {"values_floats": [1.0, 2.0, 3.0],
                                                   "default_float": 9.0}, 4),
    ({"keys_floats": [4.0, float("nan"), -2.5]}, {"values_int64s": [1, 2, 3]}, 2)])
def test_numbers_are_translated(keys, values, version):
    """Some are no keys; of equal keys the first counts, also where it is NaN, which is found from
    version 4 on."""
    whole = "keys_int64s" in keys
    x = np.array([[4, -2, 3], [9, 1 << 40, 1 << 41]], np.int64) if whole else np.array(
        [[4, np.nan, 3], [-2.5, np.inf, -2.25]], np.float32)
    model, inputs = one("LabelEncoder", [x], domain=ML, **keys, **values)
    model.opset_import[-1].version = version
    check(model, inputs)
