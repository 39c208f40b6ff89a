"""Programs that run in processes of their own, by file path; they import the standard library only."""
