const double A = 1.
