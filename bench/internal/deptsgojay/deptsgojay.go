// Package deptsgojay writes the documents of package depts with gojay, as the article
// on a read-through cache in Go does: by methods that name each member.
package deptsgojay

import (
	"sync"

	"github.com/francoispqt/gojay"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
)

// A Dept implements gojay's encoding of a document.
type Dept struct{ depts.Dept }

// IsNil implements [gojay.MarshalerJSONObject].
func (d *Dept) IsNil() bool { return d == nil }

// MarshalJSONObject implements [gojay.MarshalerJSONObject].
func (d *Dept) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("deptno", d.DeptNo)
	enc.StringKey("dname", d.DName)
	enc.StringKey("loc", d.Loc)
	enc.ArrayKey("emps", emps(d.Emps))
}

type emps []depts.Emp

func (e emps) IsNil() bool { return e == nil }

func (e emps) MarshalJSONArray(enc *gojay.Encoder) {
	for i := range e {
		enc.Object((*emp)(&e[i]))
	}
}

type emp depts.Emp

func (e *emp) IsNil() bool { return e == nil }

func (e *emp) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("empno", e.EmpNo)
	enc.Int64Key("deptno", e.DeptNo)
	enc.StringKey("ename", e.EName)
	enc.StringKey("job", e.Job)
	enc.Int64Key("mgr", e.Mgr)
	enc.StringKey("hiredate", e.HireDate)
	enc.Int64Key("sal", e.Sal)
	enc.Int64KeyNullEmpty("comm", e.Comm)
	enc.StringKey("email", e.Email)
	enc.StringKey("phone", e.Phone)
}

// A Buffer is memory for documents.
type Buffer struct{ Data []byte }

// Write implements [io.Writer] for gojay.
func (b *Buffer) Write(p []byte) (int, error) {
	b.Data = append(b.Data, p...)
	return len(p), nil
}

// Encode replaces the content of the buffer by the document.
func (b *Buffer) Encode(d *Dept) error {
	b.Data = b.Data[:0]
	enc := gojay.BorrowEncoder(b)
	defer enc.Release()
	return enc.EncodeObject(d)
}

// Buffers keeps the memory of answers; a pool of pointers, or each Put would allocate.
var Buffers = sync.Pool{New: func() any { return new(Buffer) }}
