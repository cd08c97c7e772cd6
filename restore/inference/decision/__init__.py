"""What is measured of a picture and of an answer, and the rules that decide by it."""
