struct Implicit {
  string a
  i32 b,
  5: i32 c
  optional string d = "d"
}

struct Negative {
  -1: string a,
  -2: i32 b
  0: i64 c
}

struct Bounds {
  1: i32 first
  32767: i32 last
}
