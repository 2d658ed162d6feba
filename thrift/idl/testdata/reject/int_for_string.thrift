const string A = 5
const binary B = 1.5
const string C = true
