struct A {
  1: i32
  2: b
  3: list<i32 c
  4: map<i32> d
}
enum E {
  A = x,
  B = "y"
  C
}
service S {
  void f(1: i32 a
  i32 g()
  i32 1()
}
const i32 = 5
const i32 X 5
const i32 Y = 
typedef A
