"""The learners, one file each: frozen settings that turn a mini-batch, or a round, into a better prior."""
