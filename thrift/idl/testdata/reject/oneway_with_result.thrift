# reference: accepts with a warning, but there is no answer that could hold the result
service S { oneway i32 f() }
