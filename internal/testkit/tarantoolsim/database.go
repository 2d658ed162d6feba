package tarantoolsim

import (
	"maps"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// database contains all spaces.
type database struct {
	spaces  map[uint32]*space
	version uint32 // of the schema
	clock   uint64 // grows with every change of a tuple
}

func newDatabase() database {
	db := database{spaces: make(map[uint32]*space), version: 1}
	db.describe()
	return db
}

// transaction is a transaction in a stream. It sees the spaces as they were when it began, and its
// own changes.
type transaction struct {
	spaces   map[uint32]*space
	began    uint64              // the database's clock
	version  uint32              // of the schema
	deadline time.Time           // if zero, there is none
	changes  map[change]*tuple   // the new tuple, or nil if it was deleted
	touched  map[change]struct{} // what was read or changed
	order    []change            // the keys of changes, in the order of the first change
}

// change identifies a tuple by its space and its encoded primary key.
type change struct {
	space uint32
	key   string
}

// begin starts a transaction.
func (db *database) begin() *transaction {
	for _, sp := range db.spaces {
		sp.shared = true
	}
	return &transaction{
		spaces: maps.Clone(db.spaces), began: db.clock, version: db.version,
		changes: make(map[change]*tuple), touched: make(map[change]struct{}),
	}
}

// expired returns the error of a transaction that took too long.
func (tx *transaction) expired() error {
	if !tx.deadline.IsZero() && time.Now().After(tx.deadline) {
		return fail(iproto.CodeTransactionTimeout, "Transaction has been aborted by timeout")
	}
	return nil
}

var errConflict = fail(iproto.CodeTransactionConflict, "Transaction has been aborted by conflict")

// commit makes the changes of a transaction, all or none: it fails if a tuple that it read by its
// full key, or changed, was changed by others in the meantime. Range reads are not checked.
func (db *database) commit(tx *transaction) error {
	if len(tx.changes) == 0 {
		return nil
	}
	if db.version != tx.version {
		return errConflict
	}
	for c := range tx.touched {
		if db.spaces[c.space].changed[c.key] > tx.began {
			return errConflict
		}
	}
	// Work on copies, so that a conflict with an existing key leaves nothing half done.
	copies := make(map[uint32]*space)
	for _, c := range tx.order {
		sp := copies[c.space]
		if sp == nil {
			sp = db.spaces[c.space].clone()
			copies[c.space] = sp
		}
		old := sp.byKey(c.key)
		sp.swap(old, nil)
	}
	for _, c := range tx.order {
		sp, t := copies[c.space], tx.changes[c]
		if t == nil {
			continue
		}
		for _, ix := range sp.indexes {
			if ix.conflict(t, nil) != nil {
				return errConflict
			}
		}
		sp.swap(nil, t)
	}
	for id, sp := range copies {
		db.spaces[id] = sp
	}
	db.clock++
	for _, c := range tx.order {
		db.spaces[c.space].changed[c.key] = db.clock
	}
	return nil
}

// primaryKey returns the encoded primary key of a tuple.
func (sp *space) primaryKey(t *tuple) string { return keyName(sp.indexes[0].keyOf(t)) }

func keyName(key []any) string { return string(iproto.AppendAny(nil, key)) }

// byKey returns the tuple with the given primary key.
func (sp *space) byKey(name string) *tuple {
	d := iproto.NewDecoder([]byte(name))
	key, _ := d.Any().([]any)
	return sp.indexes[0].find(key)
}

// view is the data on which a request operates: the database, or a transaction's copy of it.
type view struct {
	db *database
	tx *transaction // nil outside of transactions
}

func (v view) spaces() map[uint32]*space {
	if v.tx != nil {
		return v.tx.spaces
	}
	return v.db.spaces
}

// read remembers that a transaction depends on a tuple, or on its absence.
func (v view) read(sp *space, key string) {
	if v.tx != nil {
		v.tx.touched[change{sp.id, key}] = struct{}{}
	}
}

// swap replaces old with t, either of which may be nil, after it has checked that unique keys
// remain unique.
func (v view) swap(sp *space, old, t *tuple) error {
	if t != nil {
		for _, ix := range sp.indexes {
			if ix.conflict(t, old) != nil {
				return sp.duplicate(ix)
			}
		}
	}
	if old == nil && t == nil {
		return nil
	}
	if v.tx == nil {
		v.db.clock++
		sp = v.own(sp)
		for _, one := range []*tuple{old, t} {
			if one != nil {
				sp.changed[sp.primaryKey(one)] = v.db.clock
			}
		}
		sp.swap(old, t)
		return nil
	}
	sp = v.own(sp)
	sp.swap(old, t)
	if old != nil {
		v.tx.note(sp, old, nil)
	}
	if t != nil {
		v.tx.note(sp, t, t)
	}
	return nil
}

// note records the change of a tuple.
func (tx *transaction) note(sp *space, one, now *tuple) {
	c := change{sp.id, sp.primaryKey(one)}
	if _, known := tx.changes[c]; !known {
		tx.order = append(tx.order, c)
	}
	tx.changes[c] = now
	tx.touched[c] = struct{}{}
}

// own returns the space for writing: a copy if a transaction and the database share it.
func (v view) own(sp *space) *space {
	if !sp.shared {
		return sp
	}
	c := sp.clone()
	v.spaces()[sp.id] = c
	return c
}

// sorted returns the spaces in the order of their numbers.
func (db *database) sorted() []*space { return slices.SortedFunc(maps.Values(db.spaces), byNumber) }
