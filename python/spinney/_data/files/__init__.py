"""Tables on disk and on standard input, as polars frames: CSV, Parquet, Arrow, Excel.

records    a CSV file as whole records, block by block
faults     what is wrong with a file that cannot be read, and what to do
read       a file as a frame, drawn from if it is larger than allowed
"""
