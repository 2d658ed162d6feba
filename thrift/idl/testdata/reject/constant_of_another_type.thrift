const string TEXT = "a"
const i32 A = TEXT
const double D = 1
const i32 E = D
const list<i32> F = [1]
const i32 G = F
