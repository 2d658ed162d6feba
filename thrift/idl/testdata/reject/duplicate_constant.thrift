const i32 A = 1
const i32 A = 2
