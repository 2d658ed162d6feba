const uuid A = "01234567"
