"""Images of another size than the prior's, restored in windows: which, what they tell each other, and their blend."""
