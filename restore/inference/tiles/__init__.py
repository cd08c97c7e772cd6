"""Pictures of any size: overlapping tiles, and their blend."""
