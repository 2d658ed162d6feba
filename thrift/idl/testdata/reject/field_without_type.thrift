struct A {
  1: optional
  2: i32 b
}
