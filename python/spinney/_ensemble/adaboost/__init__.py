"""AdaBoost: members that are fitted one after the other to reweighted rows."""
