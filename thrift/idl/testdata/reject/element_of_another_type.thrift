const list<i32> A = [1, "two", 3]
const map<string, i32> B = {"a": "b", 5: 6}
const set<i32> C = [[1]]
