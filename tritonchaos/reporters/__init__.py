"""Reporters: print what summary computed, one file each."""
