"""What becomes of TAP machines along training (TAP machine, sec. VII.1-VII.3 and appendix E; Figs. 3-7 and 11)."""
