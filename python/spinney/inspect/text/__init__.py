"""Trees in words and tables.

    conditions    what a branch asks of a column; the splits stored at the nodes
    reader        a fitted tree with its names
    text          a tree, or the path of one row, as indented text; the leaves as logical rules
    tables        the nodes as a frame, as nested dicts or as JSON
    split_tables  every cut of one column, with what it gains

All of them read a fitted model through one `TreeReader`; a `Condition` is what a branch asks of a column.
"""
