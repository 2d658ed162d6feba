service S extends T {}
service T extends S {}
