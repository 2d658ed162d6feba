struct A {}
enum A { B }
typedef i32 A
service A {}
