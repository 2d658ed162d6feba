struct A {}
service S extends A {}
