namespace go plain

struct Plain { 1: i32 a }
