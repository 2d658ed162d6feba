struct User { 1: i32 a }
struct B { 1: Usr user, 2: list<Zzz> c }
