enum E { A, B, A }
