struct A {
  1: i32 a @ 5
  2: i32 b
}
%%
