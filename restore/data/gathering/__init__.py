"""Turn a user's files into images to learn from."""
