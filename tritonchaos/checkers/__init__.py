"""Checkers: judge a history, touch nothing, one file each."""
