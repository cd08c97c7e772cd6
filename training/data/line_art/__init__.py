"""Line art to learn from: sheet music, circuit diagrams, maps, tables and hatching."""
