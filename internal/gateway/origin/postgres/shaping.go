package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// shaping is what affects the documents of a resource in addition to its tables,
// views and the functions that a statement calls itself.
type shaping struct {
	types     []uint32 // types of users
	functions []uint32 // functions of users that policies call
}

// readWatch determines what the resources of a schema depend on, so that the digest
// statement need not search. A new dependency cannot arise without a change of a row
// that is already watched: of a table, a type, a view, a policy or a function.
func readWatch(ctx context.Context, tx pgx.Tx, s *schema, roles ...string) (*watch, error) {
	shapes := make([]shaping, len(s.resources))
	var relations, functions, types places
	for i, c := range s.resources {
		if s.set.Retired[i] {
			continue
		}
		for _, n := range c.Nodes {
			relations.add(i, n.Table.oid)
		}
		for _, source := range c.sources {
			relations.add(i, source.table.oid)
		}
		for _, oid := range c.relations {
			if !c.inTree(oid) {
				relations.add(i, oid) // a view
			}
		}
		for _, oid := range c.functions {
			functions.add(i, oid)
		}
		for _, oid := range c.types {
			types.add(i, oid)
		}
	}
	rows, err := tx.Query(ctx, shapingSQL, relations.of, relations.oids, functions.of, functions.oids, types.of, types.oids)
	if err != nil {
		return nil, err
	}
	var at int32
	var oid uint32
	var isType bool
	_, err = pgx.ForEachRow(rows, []any{&at, &oid, &isType}, func() error {
		if isType {
			shapes[at].types = append(shapes[at].types, oid)
		} else {
			shapes[at].functions = append(shapes[at].functions, oid)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newWatch(s, shapes, roles), nil
}

// roles are the roles that read documents, apart from that of the stream.
func (o *Origin) roles() []string { return []string{o.loadFrom.pool.ConnConfig.User} }

// places are oids with the resource that each belongs to, as arguments: texts, so
// that no query mode of pgx has to know the types.
type places struct{ of, oids []string }

func (p *places) add(resource int, oid uint32) {
	p.of = append(p.of, strconv.Itoa(resource))
	p.oids = append(p.oids, formatOID(oid))
}

// shapingSQL returns, for each resource, the user-defined types in its documents, and
// the user-defined functions that policies of its tables call. $1 and $2 are its
// tables and views, $3 and $4 functions, $5 and $6 types. From each type it continues
// to the base type of a domain, to elements of arrays, to attributes of composite
// types, and to subtypes of ranges. Types below 16384 are built in and never change,
// nor do their components.
const shapingSQL = `
WITH RECURSIVE relation AS (
	SELECT u.place::pg_catalog.int4 AS place, u.oid::pg_catalog.oid AS oid
	FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) AS u(place, oid)
), function AS (
	SELECT u.place::pg_catalog.int4 AS place, u.oid::pg_catalog.oid AS oid, false AS policy
	FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]), pg_catalog.unnest($4::pg_catalog.text[])) AS u(place, oid)
	UNION
	SELECT r.place, d.refobjid, true
	FROM relation r JOIN pg_catalog.pg_policy p ON p.polrelid OPERATOR(pg_catalog.=) r.oid
	JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) p.oid
	WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
), part AS (
	SELECT g.place, g.oid FROM (
		SELECT r.place, a.atttypid AS oid FROM relation r JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) r.oid
		WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
		UNION
		SELECT f.place, p.prorettype FROM function f JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) f.oid WHERE NOT f.policy
		UNION
		SELECT f.place, o.oid FROM function f JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) f.oid
		CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(p.proallargtypes)) AS o(oid) WHERE NOT f.policy
		UNION
		SELECT u.place::pg_catalog.int4, u.oid::pg_catalog.oid
		FROM ROWS FROM (pg_catalog.unnest($5::pg_catalog.text[]), pg_catalog.unnest($6::pg_catalog.text[])) AS u(place, oid)
	) AS g
	UNION
	SELECT part.place, n.oid FROM part JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) part.oid CROSS JOIN LATERAL (
		SELECT t.typbasetype AS oid UNION ALL SELECT t.typelem
		UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
			WHERE a.attrelid OPERATOR(pg_catalog.=) t.typrelid AND t.typrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
			AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
		UNION ALL SELECT g.rngsubtype FROM pg_catalog.pg_range g
			WHERE g.rngtypid OPERATOR(pg_catalog.=) t.oid OR g.rngmultitypid OPERATOR(pg_catalog.=) t.oid
	) AS n WHERE part.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
)
SELECT part.place, part.oid, true FROM part WHERE part.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
UNION SELECT f.place, f.oid, false FROM function f WHERE f.policy`

// readTypes finds the types of users in a statement that is a view at the moment,
// and in the views that it reads: those of its columns, and of all its expressions.
func (r *reading) readTypes(ctx context.Context, tx pgx.Tx, view uint32) error {
	views := []uint32{view}
	for _, one := range r.relations {
		if one.kind == 'v' {
			views = append(views, one.oid)
		}
	}
	rows, err := tx.Query(ctx, `SELECT d.refobjid FROM pg_catalog.pg_rewrite w
		JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) w.oid
		WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid
		AND w.ev_class OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[])
		UNION
		SELECT a.atttypid FROM pg_catalog.pg_attribute a
		WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND a.attnum OPERATOR(pg_catalog.>) 0
		AND a.atttypid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid`, formatOIDs(views))
	if err != nil {
		return err
	}
	r.types, err = pgx.CollectRows(rows, pgx.RowTo[uint32])
	return err
}
