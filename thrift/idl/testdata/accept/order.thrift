# reference: rejects, because it reads from top to bottom; other compilers do not
namespace go order

const Color FIRST = Color.RED
const i32 SECOND = THIRD
const i32 THIRD = 3
const Late STRUCT = {"a": [1]}

enum Color { RED }
struct Late { 1: list<i32> a, 2: i32 b = THIRD }

service Derived extends Basis {
  void f() throws (1: Fault fault)
}
service Basis {}
exception Fault {}
