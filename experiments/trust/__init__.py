"""Is what is claimed true? Intervals, the decision on hard data, sources, annotators, slices: each by its own program.

A part lists its jobs, judges one after the other in processes of one thread each, and makes tables of the rows. What
was used to design by, data sets and simulated worlds, stands apart from what judges.
"""
