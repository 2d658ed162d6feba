namespace go ignored

union U { 1: required i32 a }
exception E { 1: string why }
exception Twice { 1: map<i32, i32> inside }
service S {
  void f(1: optional i32 a) throws (1: required E e, 2: optional Twice t)
}
