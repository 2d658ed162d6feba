# reference: accepts, but no generated code of it compiles
const i8 A = 128
const i16 B = -32769
const i32 C = 2147483648
const i32 D = 1
const i64 BIG = 3000000000
const i32 E = BIG
