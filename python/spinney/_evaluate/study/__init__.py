"""From a table to a compared family of models: the main job."""
