"""Fit a reference case with the library's own estimators, and write the result in the layout of the reference."""

import numpy as np
import spinney

from golden.cases import to_pandas

CONTROL = (
    "minsplit", "minbucket", "cp", "maxcompete", "maxsurrogate", "usesurrogate", "surrogatestyle", "maxdepth", "cost",
)  # fmt: skip
CSPLIT = {"left": 1, "right": 3}


def make_estimator(case, quirks):
    """The estimator that rpart's own words ask for."""
    words = {name: case.params[name] for name in CONTROL if name in case.params}
    words |= {"xval": 0 if case.xgroups is None else case.xgroups, "rpart_quirks": quirks}
    if case.method == "class":
        parms = {"prior": case.params["prior"], "loss": case.params["loss"], "split": case.params["split"]}
        return spinney.DecisionTreeClassifier.rpart(**words, **parms)
    if case.method == "anova":
        return spinney.DecisionTreeRegressor.rpart(**words)
    parms = {"shrink": case.params.get("shrink"), "error": case.params.get("error_method") or "deviance"}
    return spinney.DecisionTreeRegressor.rpart(method=case.method, **words, **parms)


def fit_case(case, quirks=True):
    X, y, _ = to_pandas(case)
    return make_estimator(case, quirks).fit(X, y, sample_weight=case.weights)


def describe(case, model):
    """The neutral dict that ``golden.compare`` compares."""
    splits, csplit = split_tables(case, model)
    record = model.rpart_
    return {
        "frame": record.frame(model.schema_),
        "splits": splits,
        "csplit": csplit,
        "cptable": record.cp_table.tolist(),
        "variable_importance": importance(model),
        "train_node": record.numbers()[record.where[record.where >= 0]].tolist(),
        "newdata_pred": predictions(case, model),
        "pruned": [pruned_summary(case, model.pruned(cp=line["cp"]), line["cp"]) for line in case.expected["pruned"]],
    }


def split_tables(case, model):
    rows, csplit = [], []
    for line in model.rpart_.splits(model.schema_):
        ncat, index = -1 if line["below"] == "left" else 1, line["cut"]
        levels = case.levels[case.names.index(line["var"])]
        if levels is not None:
            sides = {value: CSPLIT[side] for side in CSPLIT for value in line[side]}
            csplit.append([sides.get(level, 2) for level in levels])
            ncat, index = len(levels), len(csplit)
        kept = {key: line[key] for key in ("node", "role", "var", "count", "improve", "adj")}
        rows.append({**kept, "ncat": ncat, "index": index})
    return rows, csplit


def importance(model):
    return dict(zip(model.schema_.names, model.rpart_.importance(model.n_features_in_).tolist(), strict=True))


def predictions(case, model):
    X = case.new_frame
    found = {"node": new_nodes(case, model)}
    if case.method != "class":
        return {**found, "vector": model.predict(X).tolist()}
    codes = {label: k for k, label in enumerate(model.classes_.tolist(), start=1)}
    classes = [codes[label] for label in model.predict(X).tolist()]
    return {**found, "class_index": classes, "prob": model.predict_proba(X).tolist()}


def new_nodes(case, model):
    return model.rpart_.numbers()[model.apply(case.new_frame)].tolist()


def pruned_summary(case, model, cp):
    record = model.rpart_
    order, numbers = record.order(), record.numbers()
    ends, counts = np.unique(numbers[record.where[record.where >= 0]].astype(np.int64), return_counts=True)
    return {
        "cp": cp,
        "nodes": [number for number, _ in order],
        "leaves": [number for number, node in order if record.tree.is_leaf[node]],
        "complexity": [float(record.complexity[node]) for _, node in order],
        "cptable": record.cp_table.tolist(),
        "variable_importance": importance(model),
        "newdata_node": new_nodes(case, model),
        "train_node_counts": {str(number): int(count) for number, count in zip(ends, counts, strict=True)},
    }
