struct A.B { 1: i32 a }
struct C { 1: i32 a.b }
