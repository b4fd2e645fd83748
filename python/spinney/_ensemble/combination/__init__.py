"""What ensembles of different estimators share: members by name, their fits, what they say, files."""
