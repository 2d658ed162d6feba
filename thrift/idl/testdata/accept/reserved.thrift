# reference 0.17: rejects, because it reserves words of languages that it generates; 0.25 accepts
struct import { 1: string class, 2: i32 self }
