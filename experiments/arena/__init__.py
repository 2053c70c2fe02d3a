"""The arena: who learns the truth from twisted training data? Data sets x twists x methods x seeds.

Every method of a run sees the same split and the same twist, and is judged on clean test rows.
"""
