"""Experiments that anyone can rerun: data sets, the methods compared, the arena and what it shows."""
