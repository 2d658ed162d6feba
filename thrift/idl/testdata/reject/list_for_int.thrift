const i32 A = [5]
const string B = {}
