const i32 A = B
const i32 B = A
const list<i32> C = [1, A]
