package pgdepts

import "testing"

func TestSameJSON(t *testing.T) {
	const doc = `{"deptno":1,"loc":null,"emps":[{"sal":1000.50},{"sal":2}]}`
	for _, other := range []string{doc, `{"emps":[{"sal":1000.5},{"sal":2.0}], "deptno" : 1, "loc":null}`} {
		if err := sameJSON([]byte(doc), []byte(other)); err != nil {
			t.Error(err)
		}
	}
	for _, other := range []string{
		`{"deptno":2,"loc":null,"emps":[{"sal":1000.50},{"sal":2}]}`, `{"deptno":1,"loc":"","emps":[{"sal":1000.50},{"sal":2}]}`,
		`{"deptno":1,"loc":null,"emps":[{"sal":2},{"sal":1000.50}]}`, `{"deptno":1,"loc":null,"emps":[{"sal":1000.50}]}`,
		`{"deptno":1,"loc":null,"emps":[{"sal":"1000.50"},{"sal":2}]}`, `{"deptno":1,"emps":[{"sal":1000.50},{"sal":2}]}`, `{"deptno":1,`,
	} {
		if sameJSON([]byte(doc), []byte(other)) == nil {
			t.Errorf("%s was accepted as %s", other, doc)
		}
	}
}
