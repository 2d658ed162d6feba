package sqlite

import (
	"testing"
)

func TestLoadNestedDocument(t *testing.T) {
	path := newFile(t, deptSchema...)
	o := openOrigin(t, Config{Path: path}, deptResource())
	wantDoc(t, o, "10", `{"deptno":10,"dname":"ACCOUNTING","emps":[{"empno":1,"ename":"CLARK"},{"empno":2,"ename":"KING"}]}`)
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	wantDoc(t, o, "40", ``)
	findings, err := o.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.State != Present {
			t.Errorf("%s is %s", f.Name, f.State)
		}
		t.Log(f.SQL)
	}
}
