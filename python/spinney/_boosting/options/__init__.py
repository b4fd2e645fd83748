"""What is asked of boosting, and what goes with what."""
