const string A = "a
const string B = 'b
