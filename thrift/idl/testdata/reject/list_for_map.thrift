# reference: accepts, and finds nothing in it
const map<i32, i32> A = [1]
const list<i32> B = {1: 2}
