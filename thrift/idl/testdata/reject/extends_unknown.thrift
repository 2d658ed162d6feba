service Base {}
service S extends Bass {}
