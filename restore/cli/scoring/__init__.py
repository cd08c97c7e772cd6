"""What `restore evaluate` does, one file for each thing it measures."""
