const 5 A = 1
const list<i32 B = []
typedef 5 C
typedef i32 5
enum { A }
enum D A }
struct 5 {}
struct E extends F {}
service 5 {}
service G extends 5 {}
service H ( void f() }
service I { 5 f() void g void h( void i() throws void j() throws (5) }
service K {
  f()
  void g(1: i32 a) throws E
  oneway i32 h(1: i32 5),
}
namespace 5 a
namespace go 5
include lib
cpp_include 5
struct L {
  1: map i32, i32> a
  2: map<5, i32> b
  3: map<i32 i32> c
  4: list<> d
  5: set cpp_type 5 <i32> e
  6: list<i32> cpp_type f
  7: i32 g xsd_attrs 5
  8: i32 h = }
  9: i32 i = [1, {2: 3, 4}, ]
 10: i32 j (5)
 11: i32 k (a = 5)
 12: i32 l (a = "b"
struct M {}
