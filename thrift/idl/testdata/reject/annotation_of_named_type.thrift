struct A {}
struct B { 1: A (key = "value") a }
