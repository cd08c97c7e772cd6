"""Pictures of any size: overlapping tiles, the messages they exchange, and their blend."""
