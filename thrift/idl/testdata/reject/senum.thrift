senum A { "a", "b" }
struct B { 1: i32 c }
