// Package depts generates the documents of the gateway's benchmarks: departments with ten employees
// each, 1.6 to 1.8 KB of JSON, the same for every subject.
package depts

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Count is the number of documents of the scenarios that fit in memory. Keys
// run from 1.
const Count = 1000

// EmpsPerDept is the number of children of a document.
const EmpsPerDept = 10

// A Dept is a document. Its JSON names are the names of the columns.
type Dept struct {
	DeptNo int64
	DName  string
	Loc    string
	Emps   []Emp
}

// An Emp is a child of a Dept.
type Emp struct {
	EmpNo    int64
	DeptNo   int64
	EName    string
	Job      string
	Mgr      int64
	HireDate string
	Sal      int64
	Comm     int64 // 0 is written as null
	Email    string
	Phone    string
}

var (
	names  = []string{"Adams", "Allen", "Blake", "Clark", "Ford", "James", "Jones", "King", "Martin", "Miller", "Scott", "Smith", "Turner", "Ward"}
	jobs   = []string{"ANALYST", "CLERK", "MANAGER", "PRESIDENT", "SALESMAN"}
	places = []string{"BOSTON", "CHICAGO", "DALLAS", "NEW YORK", "SEATTLE"}
	units  = []string{"ACCOUNTING", "OPERATIONS", "RESEARCH", "SALES", "SUPPORT"}
)

// Make returns department n, always the same for the same n.
func Make(n int64) Dept {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	d := Dept{DeptNo: n, DName: fmt.Sprintf("%s %d", pick(units), n), Loc: pick(places)}
	for i := range int64(EmpsPerDept) {
		name := pick(names)
		e := Emp{
			EmpNo:    n*EmpsPerDept + i,
			DeptNo:   n,
			EName:    name,
			Job:      pick(jobs),
			Mgr:      n * EmpsPerDept,
			HireDate: fmt.Sprintf("%04d-%02d-%02d", 1981+rng.IntN(40), 1+rng.IntN(12), 1+rng.IntN(28)),
			Sal:      1000 + 50*rng.Int64N(100),
			Phone:    fmt.Sprintf("555-%04d", rng.IntN(10_000)),
		}
		if e.Job == "SALESMAN" {
			e.Comm = 100 + 100*rng.Int64N(20)
		}
		e.Email = fmt.Sprintf("%s.%d@example.com", name, e.EmpNo)
		d.Emps = append(d.Emps, e)
	}
	return d
}

// AppendJSON appends the document as the gateway composes it: no spaces, members
// in the order of the columns, children last.
func (d *Dept) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"deptno":`...)
	dst = strconv.AppendInt(dst, d.DeptNo, 10)
	dst = appendText(dst, `,"dname":"`, d.DName)
	dst = appendText(dst, `,"loc":"`, d.Loc)
	dst = append(dst, `,"emps":[`...)
	for i := range d.Emps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.Emps[i].appendJSON(dst)
	}
	return append(dst, "]}"...)
}

func (e *Emp) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"empno":`...)
	dst = strconv.AppendInt(dst, e.EmpNo, 10)
	dst = append(dst, `,"deptno":`...)
	dst = strconv.AppendInt(dst, e.DeptNo, 10)
	dst = appendText(dst, `,"ename":"`, e.EName)
	dst = appendText(dst, `,"job":"`, e.Job)
	dst = append(dst, `,"mgr":`...)
	dst = strconv.AppendInt(dst, e.Mgr, 10)
	dst = appendText(dst, `,"hiredate":"`, e.HireDate)
	dst = append(dst, `,"sal":`...)
	dst = strconv.AppendInt(dst, e.Sal, 10)
	dst = append(dst, `,"comm":`...)
	if e.Comm == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, e.Comm, 10)
	}
	dst = appendText(dst, `,"email":"`, e.Email)
	dst = appendText(dst, `,"phone":"`, e.Phone)
	return append(dst, '}')
}

// appendText appends a member whose value needs no escapes.
func appendText(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, '"')
}
