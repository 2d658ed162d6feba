service S { void f(), void f() }
