"""How a forest grows: samples of rows, turns, out-of-bag predictions, what is kept of the rows."""
