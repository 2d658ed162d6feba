namespace * some (key = "value")
