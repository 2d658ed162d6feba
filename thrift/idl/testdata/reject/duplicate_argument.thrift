service S { void f(1: i32 a, 1: i32 b, 2: i32 a) }
