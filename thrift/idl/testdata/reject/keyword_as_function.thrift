service S { void list() }
