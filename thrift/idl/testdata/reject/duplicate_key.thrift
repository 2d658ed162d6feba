# reference: accepts, and keeps the last
const i32 ONE = 1
const map<i32, i32> A = {1: 2, ONE: 3}
struct S { 1: i32 a }
const S C = {"a": 1, "a": 2}
