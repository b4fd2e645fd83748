"""Options of boosting: option objects, automatic settings, compatibility checks, and the engine's options."""
