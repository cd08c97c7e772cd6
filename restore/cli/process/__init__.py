"""The process a command runs in: its streams, its signals, and the processes beside it."""
