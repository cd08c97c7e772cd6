"""What training shows: a picture while it goes on, and at its end a page for a browser."""
