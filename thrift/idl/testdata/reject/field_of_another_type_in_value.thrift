struct A { 1: i32 a, 2: list<string> b }
const A X = {"a": "text", "b": ["a", 5]}
