"""Models that remember rows, or count them in cells: neighbours and histograms."""
