"""What training shows: a picture while it runs, and a page for a browser at its end."""
