strukt A {}

struct B { 1: i32 a }
