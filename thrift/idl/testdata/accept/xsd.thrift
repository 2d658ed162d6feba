struct A xsd_all {
  1: i32 a xsd_optional,
  2: i32 b xsd_nillable
  3: i32 c = 5 xsd_optional xsd_nillable xsd_attrs { 1: i32 d, 2: string e } (annotated),
}
