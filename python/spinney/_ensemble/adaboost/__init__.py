"""AdaBoost: members that look at what the earlier ones got wrong."""
