"""Evidence: experiments that anyone can rerun from a checkout. Nothing here is in the wheel.

`demo` is a first look, `arena` compares methods on twisted data, `paper` reproduces the paper, `benchmarks` are single
programs; the other modules are what they share.
"""
