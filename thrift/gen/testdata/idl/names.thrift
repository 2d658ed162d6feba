// Names that collide in Go, or that Go reserves.
namespace go testpkg.names

include "lib/type.thrift"
include "lib/b.thrift"

struct user {
  1: i32 id
  2: i32 ID
  3: i32 user_id
  4: i32 userId
  5: i32 type
  6: i32 func
  7: i32 reset
  8: string error
  9: i32 size_thrift
  10: i32 html_url
  11: i32 _private
  12: i32 MAX_SIZE
  13: i32 a_1_2
  14: i32 a_12
  15: i32 p
  16: i32 b
  17: i32 string
  18: i32 unknown
  19: i32 last
  20: type.Kind kind
  21: list<type.Kind> kinds
  22: b.Thing thing
  23: map<i32, b.Thing> things
}
struct User { 1: i32 x }
struct NewUser { 1: user of = {"id": 5} (go.tag = "json:\"of,omitempty\" db:\"of\""), 2: i32 plain, 3: i32 default = 3 (go.tag = "db:\"`\"") }
struct URL {}
struct Url {}
enum Color { RED, red, Color, X1 = 7 }
struct ColorRed { 1: Color color }
exception Oops { 1: i32 error, 2: string Message, 3: optional string why }
exception Failed { 1: optional string why }
exception message { 1: i32 code }
const i32 User = 5
const i32 parse_color = 6
struct ParseColor {}
struct TableOfNames {}
service S { void s(1: i32 b, 2: i32 p) void S_args() }
struct SSArgs {}
struct ListI64 {}
// Fields whose getters cannot have their names, and views whose names are in use.
struct Getters {
  1: i32 open_thrift
  2: string error
  3: bool is
  4: optional string as
  5: i32 read_byte
  6: i32 x
  7: i32 set_x
  8: optional ColorRed at
  9: list<ColorRed> view
  10: list<ColorRed> set_view
  11: i32 set_view_view
  12: list<list<string>> ok
  13: map<string, list<set<string>>> w
  14: list<set<string>> v
}
struct GettersView { 1: Getters of }
struct GettersViewAt {}
union union_of { 1: required i32 a, 2: required GettersView v }
struct Clash { 1: list<list<i64>> a, 2: list<ListI64> b, 3: map<i32, list<ListI64>> c }
