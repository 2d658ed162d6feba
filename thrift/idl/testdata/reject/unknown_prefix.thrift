struct A { 1: nowhere.B b }
