from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tritonchaos.templates.tensors import DATATYPES, numpy_dtype, random_shape, random_values


@pytest.mark.parametrize("datatype", DATATYPES)
def test_the_same_random_makes_the_same_values(datatype: str) -> None:
    first, again, other = (random_values(datatype, (5, 40), Random(seed)) for seed in (1, 1, 2))
    assert first.shape == (5, 40)
    assert first.dtype == numpy_dtype(datatype)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64", "BF16"])
def test_floats_are_finite_and_of_both_signs(datatype: str) -> None:
    values = random_values(datatype, (10000,), Random(0)).astype(np.float64)
    assert np.isfinite(values).all()
    assert values.min() < -0.9
    assert values.max() > 0.9


@pytest.mark.parametrize("datatype", ["INT8", "UINT16", "INT64", "UINT64"])
def test_integers_use_their_whole_range(datatype: str) -> None:
    values = random_values(datatype, (10000,), Random(0))
    limits = np.iinfo(values.dtype)
    assert int(values.min()) < int(limits.min) + int(limits.max) // 50
    assert int(values.max()) > int(limits.max) - int(limits.max) // 50


def test_strings_are_bytes_of_several_lengths() -> None:
    values = random_values("BYTES", (200,), Random(0))
    assert {type(value) for value in values} == {bytes}
    assert {0, 16} <= {len(value) for value in values}


def test_open_dimensions_get_a_small_size() -> None:
    shapes = {random_shape((-1, 3, -1), Random(seed)) for seed in range(50)}
    assert {shape[1] for shape in shapes} == {3}
    assert {1, 8} <= {shape[0] for shape in shapes} <= set(range(1, 9))
