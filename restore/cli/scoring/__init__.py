"""What `restore evaluate` does, one file for each kind of score."""
