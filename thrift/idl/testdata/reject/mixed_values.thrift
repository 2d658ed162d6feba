namespace go mixed
enum E { A = 1, B = 2 }
enum F { A = 1 }
typedef E Again
struct S { 1: i32 a }
const map<E, i32> K1 = {E.A: 1, 1: 2}
const map<bool, i32> K2 = {true: 1, 1: 2}
const map<double, i32> K3 = {1.5: 1, 1.5: 2}
const map<list<i32>, i32> K4 = {[1]: 1, [1]: 2}
const uuid U = "01234567-89ab-cdef-0123-456789abcdeg"
const i32 N = E.C
const string T = E.A
const Again X = E.C
const E Y = F.B
const list<i32> L = S
const bool D = true
const i8 D2 = {false: true}
const i32 D3 = false
const string D4 = D
const S D5 = D
const E D6 = false
const S D7 = {"a": [1, 2], E.A: 5}
typedef UUID Z
