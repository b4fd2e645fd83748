"""What boosting lowers: losses, their rows and targets."""
