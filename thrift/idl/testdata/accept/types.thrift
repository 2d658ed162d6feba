namespace go types

typedef i64 UserId
typedef UserId AdminId // a typedef of a typedef
typedef map<string, map<i32, set<list<binary>>>> Deep,
typedef list<Deep> Deeper;
typedef string (cpp.type = "mystring", plain) Annotated (of = "the typedef")

struct All {
  1: bool a_bool,
  2: byte a_byte;
  3: i8 an_i8
  4: i16 an_i16, 5: i32 an_i32, 6: i64 an_i64,
  7: double a_double,
  8: string a_string,
  9: binary a_binary,
  10: list<i32> a_list,
  11: set<string> a_set,
  12: map<i64, UserId> a_map,
  13: Deep deep,
  14: map<list<i32>, set<All>> strange,
  15: All & following,
  16: optional list<All> all,
  17: list<i32> (cpp.template = "std::list") annotated,
  18: map cpp_type "Hash" <i32, i32> hashed,
  19: set cpp_type "Tree" <i32> tree,
  20: list<i32> cpp_type "Vector" vector,
  21: Later later,
  22: i64 (js.type = "Long") wide (key = "value"; other = 'v'),
}

struct Later { 1: required AdminId id }

struct Tree {
  1: list<Tree> children
  2: optional Tree parent
}

union Either {
  1: string name,
  2: optional i64 id = 5
  3: Tree tree
} (one = "of")

exception Problem {
  1: required string message,
  2: optional i32 code = 7
} (kind = "client")

struct Same {
  1: string Same_,
  2: i32 same
  3: i32 SAME
}
