struct list { 1: i32 a }
