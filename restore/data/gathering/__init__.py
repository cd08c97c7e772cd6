"""From the files of a user to images to learn from."""
