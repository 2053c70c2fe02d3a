"""From what users have to what a booster takes: tables as numbers, labels as classes, rows set aside, workers."""
