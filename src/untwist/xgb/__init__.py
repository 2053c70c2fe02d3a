"""PILBoost over XGBoost's trees: on a GPU, over several machines, and models for those who serve XGBoost."""
