const string A = "a\xb"
