# reference: accepts, as two tokens
const i32 x = 1
struct S { 1: list<i32> a = [1x] }
