"""Engines: whatever can boost one class against the rest, each in a file of its own.

`engine` is the protocol that they meet, `registry` the list of them. A new engine is a subclass of `Engine` and a call
of `registry.register`.
"""
