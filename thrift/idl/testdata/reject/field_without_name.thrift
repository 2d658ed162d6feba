struct A {
  1: i32,
  2: i32 b
}
