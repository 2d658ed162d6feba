service S {}
struct A { 1: S s }
