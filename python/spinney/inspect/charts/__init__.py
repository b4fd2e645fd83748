"""Charts of plain numbers, with matplotlib."""
