package tarantoolsim

import (
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The iterators that an index supports, and the highest number of an iterator.
const (
	iterEq uint32 = iota
	iterReq
	iterAll
	iterLt
	iterLe
	iterGe
	iterGt

	iterLast = 13
)

// result is the answer to a request about a space.
type result struct {
	tuples   []*tuple
	position []byte // of the last of them
	sp       *space
	wrapped  bool // tuples are extensions
}

// append appends the body of a reply.
func (res *result) append(b []byte) []byte {
	n := 1
	if res.position != nil {
		n++
	}
	if res.wrapped {
		n++
	}
	b = box.AppendKey(iproto.AppendMap(b, n), box.KeyData)
	b = iproto.AppendArray(b, len(res.tuples))
	for _, t := range res.tuples {
		if res.wrapped {
			b = iproto.AppendTuple(b, iproto.Tuple{Format: uint64(res.sp.id), Data: t.raw})
		} else {
			b = append(b, t.raw...)
		}
	}
	if res.position != nil {
		b = iproto.AppendStringBytes(box.AppendKey(b, box.KeyPosition), res.position)
	}
	if res.wrapped {
		b = iproto.AppendMap(box.AppendKey(b, box.KeyTupleFormats), 1)
		b = appendFormat(iproto.AppendUint(b, uint64(res.sp.id)), res.sp.def.Fields)
	}
	return b
}

// operate executes a request on a space.
func (r *Request) operate() (*result, error) {
	s := r.conn.server
	s.mu.Lock()
	defer s.mu.Unlock()
	v := view{db: &s.data}
	if r.stream != nil && r.stream.tx != nil {
		v.tx = r.stream.tx
		if err := v.tx.expired(); err != nil {
			return nil, err
		}
	}
	if r.schema != 0 && r.schema != uint64(s.data.version) {
		return nil, fail(iproto.CodeWrongSchemaVersion, fmt.Sprintf("Wrong schema version, current: %d, in request: %d", s.data.version, r.schema))
	}
	sp, err := r.space(v)
	if err != nil {
		return nil, err
	}
	res := &result{sp: sp}
	res.wrapped = s.has(box.FeatureTupleExtension) && r.conn.features>>box.FeatureTupleExtension&1 == 1
	if r.code == box.CodeSelect {
		err = r.selects(v, sp, res)
		return res, err
	}
	if s.readOnly {
		return nil, fail(iproto.CodeReadOnly, "Can't modify data on a read-only instance - box.cfg.read_only is true")
	}
	if sp.system {
		return nil, fail(iproto.CodeViewIsReadOnly, fmt.Sprintf("View '%s' is read-only", sp.def.Name))
	}
	switch r.code {
	case box.CodeInsert, box.CodeReplace:
		err = r.inserts(v, sp, res)
	case box.CodeUpdate:
		err = r.updates(v, sp, res)
	case box.CodeUpsert:
		err = r.upserts(v, sp)
	case box.CodeDelete:
		err = r.deletes(v, sp, res)
	}
	return res, err
}

// space returns the space that the request names.
func (r *Request) space(v view) (*space, error) {
	named := r.conn.server.has(box.FeatureNames) && r.body.spaceName != ""
	if !named {
		if sp := v.spaces()[r.body.space]; sp != nil {
			return sp, nil
		}
		return nil, fail(iproto.CodeNoSuchSpace, fmt.Sprintf("Space '%d' does not exist", r.body.space))
	}
	for _, sp := range v.spaces() {
		if sp.def.Name == r.body.spaceName {
			return sp, nil
		}
	}
	return nil, fail(iproto.CodeNoSuchSpace, fmt.Sprintf("Space '%s' does not exist", r.body.spaceName))
}

// index returns the index that the request names.
func (r *Request) index(sp *space) (*index, error) {
	if r.conn.server.has(box.FeatureNames) && r.body.hasIndexName {
		for _, ix := range sp.indexes {
			if ix.name == r.body.indexName {
				return ix, nil
			}
		}
		return nil, fail(iproto.CodeNoSuchIndexName, fmt.Sprintf("No index '%s' is defined in space '%s'", r.body.indexName, sp.def.Name))
	}
	if int(r.body.index) < len(sp.indexes) {
		return sp.indexes[r.body.index], nil
	}
	return nil, fail(iproto.CodeNoSuchIndexID, fmt.Sprintf("No index #%d is defined in space '%s'", r.body.index, sp.def.Name))
}

// one returns the tuple with the full key of the request, or nil if there is none.
func (r *Request) one(v view, sp *space) (*tuple, error) {
	ix, err := r.index(sp)
	if err != nil {
		return nil, err
	}
	if !ix.unique {
		return nil, fail(iproto.CodeMoreThanOneTuple, "Get() doesn't support partial keys and non-unique indexes")
	}
	if r.body.key == nil {
		return nil, missing("key")
	}
	if err := ix.checkKey(r.Args, true); err != nil {
		return nil, err
	}
	t := ix.find(r.Args)
	if t != nil {
		v.read(sp, sp.primaryKey(t))
	} else if ix.number == 0 {
		v.read(sp, keyName(r.Args))
	}
	return t, nil
}

func missing(field string) error {
	return fail(iproto.CodeMissingRequestField, fmt.Sprintf("Missing mandatory field '%s' in request", field))
}

// given returns the tuple of the request.
func (r *Request) given(sp *space) (*tuple, error) {
	if r.body.tuple == nil {
		return nil, missing("tuple")
	}
	t, err := parseTuple(r.body.tuple)
	if err != nil {
		return nil, err
	}
	return t, sp.check(t)
}

func (r *Request) inserts(v view, sp *space, res *result) error {
	t, err := r.given(sp)
	if err != nil {
		return err
	}
	var old *tuple
	if r.code == box.CodeReplace {
		old = sp.indexes[0].find(sp.indexes[0].keyOf(t))
	}
	res.tuples = []*tuple{t}
	return v.swap(sp, old, t)
}

func (r *Request) deletes(v view, sp *space, res *result) error {
	t, err := r.one(v, sp)
	if err != nil || t == nil {
		return err
	}
	res.tuples = []*tuple{t}
	return v.swap(sp, t, nil)
}

func (r *Request) updates(v view, sp *space, res *result) error {
	old, err := r.one(v, sp)
	if err != nil || old == nil {
		return err // operations without a tuple are not checked
	}
	ops, err := parseOps(sp, r.body.tuple, r.body.base)
	if err != nil {
		return err
	}
	t, err := ops.apply(old, false)
	if err != nil {
		return err
	}
	if err := sp.check(t); err != nil {
		return err
	}
	if compare(sp.indexes[0].parts, old, t) != 0 {
		if sp.indexes[0].conflict(t, nil) != nil {
			return sp.duplicate(sp.indexes[0])
		}
		return fail(iproto.CodeCantUpdatePrimaryKey, fmt.Sprintf("Attempt to modify a tuple field which is part of primary index in space '%s'", sp.def.Name))
	}
	res.tuples = []*tuple{t}
	return v.swap(sp, old, t)
}

func (r *Request) upserts(v view, sp *space) error {
	t, err := r.given(sp)
	if err != nil {
		return err
	}
	ops, err := parseOps(sp, r.body.ops, r.body.base)
	if err != nil {
		return err
	}
	old := sp.indexes[0].find(sp.indexes[0].keyOf(t))
	if old == nil {
		return v.swap(sp, nil, t)
	}
	if t, err = ops.apply(old, true); err != nil {
		return err
	}
	if err := sp.check(t); err != nil {
		return err
	}
	if compare(sp.indexes[0].parts, old, t) != 0 {
		return nil // a server reports this only in its log
	}
	return v.swap(sp, old, t)
}

// selects finds the tuples of a select.
func (r *Request) selects(v view, sp *space, res *result) error {
	ix, err := r.index(sp)
	if err != nil {
		return err
	}
	b := &r.body
	if b.key == nil {
		return missing("key")
	}
	it := b.iterator
	if it > iterLast {
		return fail(iproto.CodeIllegalParams, "Illegal parameters, Invalid iterator type")
	}
	if err := ix.checkKey(r.Args, false); err != nil {
		return err
	}
	if it > iterGt {
		return fail(iproto.CodeUnsupportedIndexFeature, fmt.Sprintf("Index '%s' (TREE) of space '%s' does not support requested iterator type", ix.name, sp.def.Name))
	}
	tuples, reverse := ix.scan(it, r.Args)
	tuples = slices.DeleteFunc(tuples, func(t *tuple) bool { return r.conn.server.hides(r, sp, t) })
	if r.conn.server.has(box.FeaturePagination) {
		if tuples, err = r.after(ix, tuples, reverse); err != nil {
			return err
		}
	}
	if len(r.Args) == len(ix.parts) && ix.number == 0 && it == iterEq {
		v.read(sp, keyName(r.Args))
	}
	tuples = tuples[min(int(b.offset), len(tuples)):]
	tuples = tuples[:min(uint64(b.limit), uint64(len(tuples)))]
	res.tuples = tuples
	if b.fetch && len(tuples) > 0 && r.conn.server.has(box.FeaturePagination) {
		res.position = ix.position(tuples[len(tuples)-1])
	}
	return nil
}

// scan returns the tuples that an iterator goes over, in its order.
func (ix *index) scan(it uint32, key []any) (tuples []*tuple, reverse bool) {
	from, to := ix.bounds(key)
	all := len(ix.tuples)
	reverse = it == iterReq || it == iterLt || it == iterLe
	switch {
	case len(key) == 0:
		from, to = 0, all
	case it == iterAll, it == iterGe:
		to = all
	case it == iterGt:
		from, to = to, all
	case it == iterLe:
		from = 0
	case it == iterLt:
		from, to = 0, from
	}
	tuples = slices.Clone(ix.tuples[from:to])
	if reverse {
		slices.Reverse(tuples)
	}
	return tuples, reverse
}
