package postgres

import "strings"

// This file writes the parts of SQL whose usual spelling is looked up along the
// search path. No statement of Slipstream may depend on the path: a role that may
// create an operator in one of its schemas, which was every role in public up to
// PostgreSQL 14, could run code as the role that plans, applies or serves. A schema
// before pg_catalog hides it, and so does one after it if the arguments match exactly,
// as for varchar = text, for which PostgreSQL itself has no operator.
//
// So functions, types, casts and collations are qualified, operators are written
// OPERATOR(pg_catalog.=), and what resolves an operator without naming its schema
// is avoided: IN, BETWEEN, LIKE, IS DISTINCT FROM, NULLIF, CASE with an
// operand, JOIN USING, row comparisons, and unnest of several arguments.
// IS NULL, AND, OR, NOT, COALESCE, CASE WHEN, DISTINCT, UNION, GROUP BY and
// ORDER BY use no operator from the path.
//
// OPERATOR(...) binds less tightly than + and *, and more tightly than IS, NOT
// and AND. An operand that contains an operator needs parentheses.

// equal writes a comparison.
func equal(a, b string) string { return a + " OPERATOR(pg_catalog.=) " + b }

// fitsInt8 writes the condition that a numeric is in the range of bigint.
func fitsInt8(numeric string) string {
	return numeric + " OPERATOR(pg_catalog.>=) '-9223372036854775808'::pg_catalog.numeric AND " +
		numeric + " OPERATOR(pg_catalog.<=) '9223372036854775807'::pg_catalog.numeric"
}

// unnest writes an item of FROM with a column for each array.
func unnest(arrays []string) string {
	return "ROWS FROM (pg_catalog.unnest(" + strings.Join(arrays, "), pg_catalog.unnest(") + "))"
}
