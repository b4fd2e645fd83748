"""Trees in words and tables.

    text          a tree, or the path of one row, as indented text
    rule_list     the leaves as logical rules
    tables        the nodes as a frame, as nested dicts or as JSON
    split_tables  every cut of one column, with what it gains
    shap          how much each column adds to each prediction

All of them read a fitted model through one `TreeReader`; a `Condition` is what a branch asks of a column.
"""
