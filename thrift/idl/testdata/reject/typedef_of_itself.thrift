# reference: hangs, because it follows the typedefs without end
typedef A B
typedef B A
typedef list<C> C
struct D { 1: A a }
