# reference: accepts, for any number
const bool A = 2
