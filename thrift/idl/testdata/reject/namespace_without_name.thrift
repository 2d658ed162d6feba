namespace go
struct A {}
