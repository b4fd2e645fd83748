"""Ranking: gradients and metrics against reference implementations, what a ranker learns, and what it refuses."""

import io

import numpy as np
import pytest
import spinney
from oracle import ranking as reference
from sklearn.metrics import ndcg_score
from spinney._boosting.ranking import pair_weight, ranked_lists

SMALL = {"n_estimators": 15, "max_leaf_nodes": 6, "min_samples_leaf": 3, "learning_rate": 0.3}


def lists_of(seed, n_lists=7, most=23, ties=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most, n_lists)
    lists = rng.permutation(np.repeat(np.arange(n_lists), sizes))
    grades = rng.integers(0, 4, len(lists)).astype(float)
    grades[lists == 2] = 0
    scores = rng.normal(size=len(lists))
    if ties:
        scores = scores.round()
    return grades, scores, lists, rng.integers(1, 4, len(lists)) / 2


def table(n_lists=30, size=12, seed=0):
    rng = np.random.default_rng(seed)
    n = n_lists * size
    X = rng.normal(size=(n, 4))
    groups = np.repeat([f"query {i}" for i in range(n_lists)], size)
    shift = np.repeat(rng.normal(size=n_lists) * 5, size)  # lists differ; only the order within one matters
    X[:, 3] = shift
    wish = X[:, 0] - X[:, 1] ** 2 / 2 + rng.normal(size=n) * 0.3
    grades = np.zeros(n)
    for q in np.unique(groups):
        mine = np.flatnonzero(groups == q)
        grades[mine[np.argsort(wish[mine])]] = np.repeat([0, 1, 2], size // 3)
    order = rng.permutation(n)
    return X[order], grades[order], groups[order]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("truncation", [3, 10, None])
def test_gradients_agree_with_the_reference(ties, weighted, truncation):
    grades, scores, lists, weight = lists_of(3, ties=ties)
    weight = weight if weighted else np.ones(len(grades))
    gain = 2**grades - 1
    g, h, loss = ranked_lists(gain, weight, lists, True, truncation).gradients(scores, 2)
    found = []
    for q in np.unique(lists):
        mine = lists == q
        expected = reference.lambdas(gain[mine], scores[mine], weight[mine], truncation or 10**6)
        np.testing.assert_allclose(g[0][mine], expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(h[0][mine], expected[1], rtol=1e-9, atol=1e-12)
        found.append(reference.ndcg(gain[mine], scores[mine], weight[mine], truncation or 10**6)[0])
    assert loss == pytest.approx(1 - np.nanmean(found), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_pairs_agree_with_the_reference(weighted):
    grades, scores, lists, weight = lists_of(4, 4, 9)
    weight = weight if weighted else np.ones(len(grades))
    ranked = ranked_lists(grades, weight, lists, False, None)

    def loss(at):
        parts = [reference.pair_loss(grades[lists == q], at[lists == q], weight[lists == q]) for q in np.unique(lists)]
        return sum(part for part, _ in parts), sum(pairs for _, pairs in parts)

    total, pairs = loss(scores)
    g, h, mean = ranked.gradients(scores, 1)
    assert mean == pytest.approx(total / pairs, rel=1e-12)
    assert ranked.mean_loss(scores, 1) == mean
    for at in (scores, np.full(len(scores), 0.3)):
        g, h, _ = ranked.gradients(at, 1)
        for q in np.unique(lists):
            mine = lists == q
            expected = reference.pair_pulls(grades[mine], at[mine], weight[mine])
            np.testing.assert_allclose(g[0][mine], expected[0], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(h[0][mine], expected[1], rtol=1e-9, atol=1e-12)
    step = 1e-5  # where all scores are the same, pulls are the slopes of the loss
    for row in range(len(scores)):
        up, down = at.copy(), at.copy()
        up[row] += step
        down[row] -= step
        slope = (loss(up)[0] - loss(down)[0]) / (2 * step)
        assert weight[row] * g[0][row] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("spread", [1, 30, 100])  # several rows by one division, if their product is finite
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_long_lists_and_distant_scores_agree_with_the_reference(weighted, spread):
    grades, scores, lists, weight = lists_of(6, 5, 70)
    weight = weight if weighted else np.ones(len(grades))
    scores = scores * spread
    ranked = ranked_lists(grades, weight, lists, False, None)
    g, h, mean = ranked.gradients(scores, 1)
    total = pairs = 0.0
    for q in np.unique(lists):
        mine = lists == q
        of_list = grades[mine], scores[mine], weight[mine]
        loss, n_pairs = reference.pair_loss(*of_list)
        total, pairs = total + loss, pairs + n_pairs
        expected = reference.pair_pulls(*of_list)
        np.testing.assert_allclose(g[0][mine], expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(h[0][mine], expected[1], rtol=1e-9, atol=1e-12)
    assert mean == pytest.approx(total / pairs, rel=1e-12)
    np.testing.assert_array_equal(ranked.gradients(scores, 2)[0], g)


def test_gradients_of_distant_scores():
    g, h, _ = ranked_lists(np.array([1.0, 0.0]), None, None, True, None).gradients(np.array([-1e4, 1e4]), 1)
    assert np.isfinite([g, h]).all()
    assert g[0][0] < 0 < g[0][1]
    g, h, loss = ranked_lists(np.array([1.0, 0.0]), None, None, False, None).gradients(np.array([-1e4, 1e4]), 1)
    assert np.isfinite([g, h]).all()
    assert g[0][0] < 0 < g[0][1]
    assert loss == pytest.approx(600)  # scores are distinguished up to 300 from the middle


def test_the_order_of_tied_rows_does_not_matter():
    grades, scores, lists, weight = lists_of(3, ties=True)
    order = np.random.default_rng(1).permutation(len(grades))
    g, h, loss = ranked_lists(grades, weight, lists, True, 9).gradients(scores, 1)
    others = ranked_lists(grades[order], weight[order], lists[order], True, 9).gradients(scores[order], 1)
    np.testing.assert_allclose(others[0][0], g[0][order], atol=1e-12)
    np.testing.assert_allclose(others[1][0], h[0][order], atol=1e-12)
    assert others[2] == pytest.approx(loss, abs=1e-12)


def test_a_weight_of_two_is_a_row_twice():
    grades, scores, lists, _ = lists_of(5)
    times = np.random.default_rng(0).integers(0, 4, len(grades))
    twice = np.repeat(np.arange(len(grades)), times)
    for by_gain in (True, False):
        g, h, loss = ranked_lists(grades, times.astype(float), lists, by_gain, 8).gradients(scores, 1)
        of_rows = ranked_lists(grades[twice], None, lists[twice], by_gain, 8).gradients(scores[twice], 1)
        for one, other in ((g, of_rows[0]), (h, of_rows[1])):
            np.testing.assert_allclose(one[0] * times, np.bincount(twice, other[0], len(grades)), atol=1e-12)
        assert loss == pytest.approx(of_rows[2], abs=1e-12)


@pytest.mark.parametrize("k", [None, 3])
def test_ndcg_is_scikit_learns(k):
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 4, (6, 10)).astype(float), rng.normal(size=(6, 10)).round(1)
    groups = np.repeat(np.arange(6), 10)
    name = "ndcg" if k is None else f"ndcg@{k}"
    found = spinney.ranking_score(y.ravel(), scores.ravel(), groups, metric=name, gains="linear")
    assert found == pytest.approx(ndcg_score(y, scores, k=k), abs=1e-12)
    found = spinney.ranking_score(y.ravel(), scores.ravel(), groups, metric=name)
    assert found == pytest.approx(ndcg_score(2**y - 1, scores, k=k), abs=1e-12)


@pytest.mark.parametrize("places", [None, 2, 5])
def test_map_and_mrr_agree_with_the_reference(places):
    grades, scores, lists, _ = lists_of(6)
    end = "" if places is None else f"@{places}"
    parts = [(grades[lists == q] > 0, scores[lists == q]) for q in np.unique(lists) if grades[lists == q].any()]
    for name, of in (("map", reference.average_precision), ("mrr", reference.reciprocal_rank)):
        expected = np.mean([of(*part, places) for part in parts])
        assert spinney.ranking_score(grades, scores, lists, metric=name + end) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise"])
def test_ranks_within_lists(loss):
    X, grades, groups = table()
    new = table(seed=1)
    model = spinney.GradientBoostingRanker(loss, **SMALL).fit(X, grades, groups=groups)
    score = model.score(new[0], new[1], groups=new[2], metric="ndcg@5")
    by_values = spinney.GradientBoostingRegressor(**SMALL).fit(X, grades).predict(new[0])
    assert score > 0.9
    assert score > spinney.ranking_score(new[1], by_values, new[2], metric="ndcg@5") - 0.02
    assert model.train_score_[-1] < model.train_score_[0]


def test_order_of_the_table_and_kind_of_labels_do_not_matter():
    X, grades, groups = table()
    model = spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=groups)
    numbers = np.unique(groups, return_inverse=True)[1]
    assert model.fingerprint() == spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=numbers).fingerprint()
    by_list = np.argsort(numbers, kind="stable")
    other = spinney.GradientBoostingRanker(**SMALL).fit(X[by_list], grades[by_list], groups=numbers[by_list])
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-6)


def test_threads_do_not_matter():
    X, grades, groups = table(200)
    prints = {
        spinney.GradientBoostingRanker(loss, n_estimators=3, n_jobs=n).fit(X, grades, groups=groups).fingerprint()
        for loss in ("lambdamart", "pairwise")
        for n in (1, 2, 3)
    }
    assert len(prints) == 2


def test_stops_by_whole_lists_and_by_metrics():
    X, grades, groups = table(40)
    new = table(seed=1)
    plain = {**SMALL, "n_estimators": 60, "n_iter_no_change": 5, "random_state": 0}
    for scoring in (None, "map@3", "mrr", "ndcg@5", lambda y, scores, lists: -float(np.abs(scores).mean())):
        model = spinney.GradientBoostingRanker(scoring=scoring, **plain).fit(X, grades, groups=groups)
        assert len(model.validation_score_) >= model.n_iter_
    model = spinney.GradientBoostingRanker(**plain).fit(
        X, grades, groups=groups, X_val=new[0], y_val=new[1], groups_val=new[2]
    )
    best = spinney.ranking_score(new[1], model.predict(new[0]), new[2], metric="ndcg@30")
    assert 1 - model.validation_score_.min() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("moments", ["numbers", "dates"])
def test_the_latest_lists_are_held_out_whole(moments):
    X, grades, groups = table(20)
    number = np.array([int(group.split()[1]) for group in groups])
    rng = np.random.default_rng(0)
    time = number + rng.uniform(-0.4, 0.4, len(number))  # rows of a list differ, lists do not overlap
    if moments == "dates":
        time = np.datetime64("2024-01-01T00:00:00") + (time * 86400).astype("timedelta64[s]")
    given = {**SMALL, "n_estimators": 10, "validation_fraction": 0.2}
    model = spinney.GradientBoostingRanker(**given, early_stopping=True).fit(X, grades, groups=groups, time=time)
    late = number >= 16
    by_hand = spinney.GradientBoostingRanker(**given, early_stopping=True).fit(
        X[~late], grades[~late], groups=groups[~late], X_val=X[late], y_val=grades[late], groups_val=groups[late]
    )
    assert len(model.validation_score_) == len(by_hand.validation_score_)
    np.testing.assert_allclose(model.validation_score_, by_hand.validation_score_, atol=0.02)
    assert spinney.GradientBoostingRanker(n_iter_no_change=2).fit(X, grades, groups=groups, time=time).n_iter_ > 0
    with pytest.raises(ValueError, match="time determines that the latest rows are held out, but no rows are"):
        spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=groups, time=time)


def test_a_list_that_is_not_over_is_held_out_whole():
    X, grades, groups = table(10)
    time = np.zeros(len(groups))
    time[np.flatnonzero(groups == "query 3")[:2]] = 1.0  # a row of it is the latest
    model = spinney.GradientBoostingRanker(**SMALL, early_stopping=True, scoring=lambda y, scores, lists: -len(y))
    model.fit(X, grades, groups=groups, time=time)
    assert set(model.validation_score_) == {12}


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise"])
def test_forests_of_rounds_and_shrunken_trees_rank(loss):
    X, grades, groups = table()
    new = table(seed=1)
    for more in (
        {"growth": {"n_parallel_trees": 3}, "subsample": 0.7, "random_state": 0},
        {"regularization": {"hierarchical_shrinkage": 10.0}},
    ):
        model = spinney.GradientBoostingRanker(loss, **SMALL | {"n_estimators": 30}, **more)
        model = model.fit(X, grades, groups=groups)
        assert model.score(new[0], new[1], groups=new[2]) > 0.9
        plain = spinney.GradientBoostingRanker(loss, **SMALL | {"n_estimators": 30}).fit(X, grades, groups=groups)
        assert model.fingerprint() != plain.fingerprint()


def test_out_of_bag_rows_are_evaluated_by_list():
    X, grades, groups = table(20)
    model = spinney.GradientBoostingRanker(**SMALL, subsample=0.5, random_state=0).fit(X, grades, groups=groups)
    assert ((model.oob_scores_ > 0) & (model.oob_scores_ < 0.5)).all()
    assert model.oob_scores_[-1] < model.oob_scores_[0]
    assert model.oob_improvement_.sum() > 0


def test_a_checkpoint_is_resumed_with_the_same_lists_only(tmp_path):
    X, grades, groups = table(20)

    def stop(about):
        if about["round"] == 4:
            raise InterruptedError

    def ranker(**more):
        return spinney.GradientBoostingRanker(**SMALL, **more)

    file = tmp_path / "rounds"
    with pytest.raises(InterruptedError):
        ranker(callbacks=stop).fit(X, grades, groups=groups, checkpoint=file)
    with pytest.raises(ValueError, match="of a fit with another groups"):
        ranker().fit(X, grades, groups=np.sort(groups), checkpoint=file)
    again = ranker().fit(X, grades, groups=groups, checkpoint=file)
    assert again.fingerprint() == ranker().fit(X, grades, groups=groups).fingerprint()


def test_without_settings_there_are_folds_of_lists():
    X, grades, groups = table(20)
    model = spinney.GradientBoostingRanker(n_iter_no_change=3, effort=0.0).fit(X, grades, groups=groups)
    assert model.score(X, grades, groups=groups) > 0.9
    one = spinney.GradientBoostingRanker(n_iter_no_change=3, effort=0.0).fit(X[:60], grades[:60])
    assert one.score(X[:60], grades[:60]) > 0.8


def test_is_saved_explained_and_predicts_single_rows():
    X, grades, groups = table()
    model = spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=groups)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = spinney.load(file)
    file.seek(0)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, grades, groups=groups) == model.score(X, grades, groups=groups)
    np.testing.assert_array_equal(spinney.load_predictor(file).predict(X), model.predict(X))
    assert model.to_predictor().predict(X[0]) == model.predict(X[:1])[0]
    shap = model.shap_values(X[:5])
    np.testing.assert_allclose(shap.values.sum(axis=1) + shap.base_value, model.predict(X[:5]), atol=1e-9)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": [12] * 30}, "numpy.repeat"),
        ({"groups": ["a"] * 5}, "label of a list per row"),
        ({"groups": [None] + ["a"] * 359}, "Row 0 of groups has no label"),
        ({"groups_val": ["a"]}, "groups_val goes with X_val"),
        ({"y": np.full(360, -1.0)}, "Grades of relevance are at least 0"),
        ({"y": np.full(360, 99.0)}, "gains='linear'"),
    ],
)
def test_invalid_inputs_are_refused(more, message):
    X, grades, groups = table()
    given = {"X": X, "y": grades, "groups": groups} | more
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRanker(**SMALL).fit(**given)


def test_regularization_of_pairwise_losses_depends_on_the_number_of_rows():
    X, grades, groups = table()
    prints = {
        (loss, l2): spinney.GradientBoostingRanker(loss, **SMALL, l2_regularization=l2)
        .fit(X, grades, groups=groups)
        .fingerprint()
        for loss in ("lambdamart", "pairwise")
        for l2 in ("auto", 0.0, 0.36)
    }
    assert prints["pairwise", "auto"] == prints["pairwise", 0.36] != prints["pairwise", 0.0]
    assert prints["lambdamart", "auto"] == prints["lambdamart", 0.0]
    many = {  # the penalty is in units of a row of mean weight
        (weight, l2): spinney.GradientBoostingRanker(**SMALL, l2_regularization=l2)
        .fit(X, grades, np.full(len(X), weight), groups=groups)
        .fingerprint()
        for weight in (28.0, 140.0)
        for l2 in ("auto", 0.0, weight)
    }
    assert many[28.0, "auto"] == many[28.0, 28.0] != many[28.0, 0.0]
    assert many[140.0, "auto"] == many[140.0, 0.0] != many[140.0, 140.0]


def test_regularization_of_pairwise_losses_is_lower_with_few_different_grades():
    X, grades, groups = table()
    grades = (np.random.default_rng(1).random(len(X)) < 0.1).astype(float)
    weight = np.where(np.arange(len(X)) % 7 == 0, 0.0, 2.0)
    differ = 0.0  # the slow way: all pairs of a list, a row with itself included
    for q in np.unique(groups):
        w, g = weight[groups == q], grades[groups == q]
        differ += (np.outer(w, w) * (g[:, np.newaxis] != g)).sum() / w.sum()
    known = pair_weight(grades, weight, np.unique(groups, return_inverse=True)[1])
    assert known == pytest.approx(1.5 * differ)
    assert known < 0.5 * weight.sum()
    prints = [
        spinney.GradientBoostingRanker("pairwise", **SMALL, l2_regularization=l2)
        .fit(X, grades, weight, groups=groups)
        .fingerprint()
        for l2 in ("auto", 1e-3 * known, 1e-3 * weight.sum())
    ]
    assert prints[0] == prints[1] != prints[2]


def test_offsets_are_initial_scores():
    X, grades, groups = table()
    with pytest.raises(TypeError, match="as offset, to fit and to predict"):
        spinney.GradientBoostingRanker(init="zero")
    with pytest.raises(TypeError, match="a leaf has one value"):
        spinney.GradientBoostingSurvival(leaves="vector")
    known = X[:, 0] / 2  # a model that has found the slope
    model = spinney.GradientBoostingRanker(**SMALL | {"n_estimators": 3}).fit(X, grades, groups=groups, offset=known)
    np.testing.assert_allclose(model.predict(X, offset=known) - model.predict(X), known, atol=1e-12)
    assert model.score(X, grades, groups=groups, offset=known) > spinney.ranking_score(grades, known, groups)


def test_refuses_metrics_that_are_not_of_lists():
    X, grades, groups = table()
    with pytest.raises(ValueError, match="is not a ranking metric"):
        spinney.GradientBoostingRanker(scoring="r2", **SMALL).fit(X, grades, groups=groups)
    with pytest.raises(ValueError, match="groups and groups_val go together"):
        spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=groups, X_val=X, y_val=grades)


def test_lists_whose_length_is_no_multiple_of_the_vector_width():
    for at in (-0.01, -0.1):  # as far below 0 as is added to distances
        for by_gain in (True, False):
            g, h, _ = ranked_lists(np.array([0.0, 1.0, 2.0]), None, None, by_gain, None).gradients(
                np.array([at, at - 1, at - 2]), 1
            )
            assert np.isfinite([g, h]).all()


def test_lists_of_a_scan_are_those_of_the_table(tmp_path):
    pl = pytest.importorskip("polars")
    X, grades, groups = table()
    weight = np.arange(len(X)) % 3 + 1.0
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(grade=grades, query=groups, weight=weight)
    frame.write_parquet(tmp_path / "clicks.parquet")
    names = {"sample_weight": "weight", "groups": "query"}
    held = {"sample_weight_val": "weight", "groups_val": "query", "y_val": "grade"}
    for loss in ("lambdamart", "pairwise"):
        model = spinney.GradientBoostingRanker(loss, **SMALL)
        scanned = spinney.scan(tmp_path / "clicks.parquet")
        from_files = model.fit(scanned, "grade", **names, X_val=scanned, **held).predict(frame.select(list("abcd")))
        curve = model.validation_score_
        given = {"sample_weight": weight, "groups": groups}
        later = {"X_val": X, "y_val": grades, "sample_weight_val": weight, "groups_val": groups}
        np.testing.assert_array_equal(model.fit(X, grades, **given, **later).predict(X), from_files)
        np.testing.assert_array_equal(model.validation_score_, curve)


@pytest.mark.parametrize("loss", ["lambdamart", "pairwise"])
def test_leaves_are_refitted_to_other_lists(loss):
    X, grades, groups = table()
    model = spinney.GradientBoostingRanker(loss, **SMALL).fit(X, grades, groups=groups)
    same = model.refit(X, grades, groups=groups, decay=0.0)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=1e-12)
    np.testing.assert_allclose(same.train_score_, model.train_score_, rtol=1e-12)
    kept = model.refit(X, grades, groups=groups, decay=1.0)
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))
    turned = model.refit(X, 2 - grades, groups=groups, decay=0.0)  # the last are to be the first
    assert turned.score(X, 2 - grades, groups=groups) > 0.9 > 0.8 > model.score(X, 2 - grades, groups=groups)
    one_list = model.refit(X, grades, decay=0.0)
    assert not np.array_equal(one_list.predict(X), same.predict(X))
    with pytest.raises(ValueError, match="groups"):
        model.refit(X, grades, groups=groups[:5])


def test_predict_support_and_abstention():
    X, grades, groups = table()
    model = spinney.GradientBoostingRanker(**SMALL).fit(X, grades, groups=groups)
    rows = X[:3].copy()
    rows[1, 2] = 100.0
    assert model.predict_support(rows).outside.sum(axis=1).tolist() == [0, 1, 0]
    found = model.predict_or_abstain(rows)
    np.testing.assert_array_equal(np.isnan(found), [False, True, False])
    np.testing.assert_array_equal(found[[0, 2]], model.predict(rows)[[0, 2]])
