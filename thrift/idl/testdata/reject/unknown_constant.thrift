const i32 KNOWN = 1
const i32 A = KNWON
const string B = Other.VALUE
