"""Several classes: who learns the truth, and who finds the wrong labels? Data sets x kinds of noise x splits.

Half of the data sets, by a rule that knows their names only, were there to design by; the other half judges.
"""
