"""Grey pictures of two tones, such as scans, read in black and white."""
