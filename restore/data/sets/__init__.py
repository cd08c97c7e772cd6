"""Named data sets, one file each: where their files come from and how they are read, or how they are computed."""
