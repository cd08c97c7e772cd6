"""The process of a command: its signals, and the processes beside it."""
