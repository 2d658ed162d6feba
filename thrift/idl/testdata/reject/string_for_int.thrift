const i32 A = "5"
const double B = "5"
const bool C = "true"
