"""The parts of repro.py: standard library only, Python 3.8 and later; `assembling` joins them into one file."""
