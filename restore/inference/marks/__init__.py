"""Marks: what lies on a picture and is none of it, such as specks of dirt, bands of dots, rules, and black borders."""
