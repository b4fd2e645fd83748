"""The reader of the reference tables."""

import numpy as np
import pytest

from golden.cases import case_names, load_case, to_pandas


@pytest.mark.parametrize("name", case_names())
def test_case_is_read_whole(name):
    case = load_case(name)
    expected = case.expected
    assert len(case.y) == expected["n_rows"]
    assert [kind == "ordered" for kind in case.kinds] == [column in expected["ordered"] for column in case.names]
    missing_y = np.isnan(case.y.reshape(len(case.y), -1)).any(axis=1)
    nothing_known = np.isnan(np.column_stack(case.columns)).all(axis=1)
    assert (np.flatnonzero(missing_y | nothing_known) + 1).tolist() == expected["omitted_rows_1based"]


def test_factors_become_categories_in_the_order_of_their_levels():
    table, y, new = to_pandas(load_case("micro_ord"))
    assert table["o1"].cat.ordered
    assert table["o1"].cat.categories.tolist() == new["o1"].cat.categories.tolist()
    assert y.cat.categories.tolist() == load_case("micro_ord").class_levels
    table, _, new = to_pandas(load_case("stagec_default"))
    assert not table["ploidy"].cat.ordered
    assert table["ploidy"].cat.categories.tolist() == ["diploid", "tetraploid", "aneuploid"]
    assert table["g2"].isna().sum() == 7
    assert new.iloc[-1].isna().all()


def test_logical_columns_stay_logical_and_survival_has_two_columns():
    table, _, _ = to_pandas(load_case("zoo_default"))
    assert table["hair"].dtype == "boolean"
    _, y, _ = to_pandas(load_case("stagec_exp"))
    assert y.columns.tolist() == ["pgtime", "pgstat"]
