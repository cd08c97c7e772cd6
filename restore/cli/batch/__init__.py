"""What denoise and complete do with many images."""
