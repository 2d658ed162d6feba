# reference: accepts, and keeps both
union U { 1: i32 a, 2: i32 b }
const U X = {"a": 1, "b": 2}
