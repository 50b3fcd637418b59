"""How well a model predicts records that it has not seen."""
