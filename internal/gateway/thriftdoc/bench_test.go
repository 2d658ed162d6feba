package thriftdoc

import "testing"

func BenchmarkAppend(b *testing.B) {
	l := New(shape(), numbered())
	document := []byte(`{"id":42,"small":7,"ok":true,"ratio":1.5,"price":17.90,"title":"a title of usual length","any":{"k":[1,2]},"tags":["x"],"emps":[{"empno":7,"name":"Miller","note":"x"},{"empno":8,"name":"Smith","note":"y"}]}`)
	b.SetBytes(int64(len(document)))
	var out []byte
	for b.Loop() {
		var err error
		if out, err = l.Append(out[:0], document); err != nil {
			b.Fatal(err)
		}
	}
}
