struct A { 1: i32 count, 2: B b }
struct B { 1: i32 c }
const A X = {"cuont": 1, "b": {"d": 1}}
const A Y = {5: 1}
const A Z = [1]
