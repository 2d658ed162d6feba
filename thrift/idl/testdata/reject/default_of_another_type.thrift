struct A { 1: i32 a = "text" }
service S { void f(1: i32 a = "text") }
