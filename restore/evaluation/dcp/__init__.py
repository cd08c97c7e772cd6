"""The study of S-DCP: learners of RBMs at equal numbers of Gibbs sweeps (Upadhya & Sastry, ACML 2017, sec. 4 and 5)."""
