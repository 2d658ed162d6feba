struct A {}
}
struct B { 1: Unknown b }
