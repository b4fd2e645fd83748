"""Trees as text and tables.

    conditions    conditions of branches on columns; the splits stored at the nodes
    reader        a fitted tree with the names of its columns and classes
    text          a tree, or the path of one row, as indented text; the leaves as logical rules
    tables        the nodes as a frame, as nested dicts or as JSON
    split_tables  every candidate split of one column, with its gain
    calculators   impurities and gains of counts, every candidate split of all columns
    weakest_links weakest-link pruning step by step; trees made from counts

All but the last three read a fitted model through one `TreeReader`.
"""
