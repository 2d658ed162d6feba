namespace go testpkg.ids

struct Implicit { string a, i32 b, 5: i32 c, optional string d = "d", bool e }
struct Spread { 1: i32 a, 100: optional i32 b, 32767: i64 c, 3: string d, 16: bool e, 17: list<bool> f }
union OfImplicit { string a, i32 b }
service Calls { i32 add(i32 a, i32 b) }
