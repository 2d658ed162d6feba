struct A { 1: list<void> a }
