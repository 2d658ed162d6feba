# reference: accepts, as infinity
const double A = 1e999
