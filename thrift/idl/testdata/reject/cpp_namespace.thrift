cpp_namespace a

struct B { 1: i32 c }
