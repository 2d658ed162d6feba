# reference: accepts with a warning, but the ID has 16 bits in messages
struct A { 32768: i32 a, 70000: i32 b }
