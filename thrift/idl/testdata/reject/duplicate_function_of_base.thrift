service S { void f() }
service T extends S {}
service U extends T { void f() }
