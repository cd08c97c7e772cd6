"""The process of a command: its streams, its signals, and the processes beside it."""
