package postgres

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// keyType is the type of a column that documents are found by. It has one
// canonical text for each value, which path parser, load statement, trigger and
// derivation share.
type keyType struct {
	kind resource.Kind
	// sql is the qualified name of the type of values in comparisons. Integers
	// of all widths are int8: a number that the column cannot hold must be a
	// missing row, not an error.
	sql string
	// enum says that sql is an enum; its kind is Text.
	enum bool
}

// builtinKeyTypes are the key types by the oid of the column's base type. The
// oids are a part of PostgreSQL's interface (src/include/catalog/pg_type.dat).
var builtinKeyTypes = map[uint32]keyType{
	16:   {kind: resource.Boolean, sql: "pg_catalog.bool"},
	17:   {kind: resource.Bytes, sql: "pg_catalog.bytea"},
	20:   {kind: resource.Integer, sql: "pg_catalog.int8"},
	21:   {kind: resource.Integer, sql: "pg_catalog.int8"},
	23:   {kind: resource.Integer, sql: "pg_catalog.int8"},
	25:   {kind: resource.Text, sql: "pg_catalog.text"},
	1043: {kind: resource.Text, sql: "pg_catalog.text"},
	1082: {kind: resource.Date, sql: "pg_catalog.date"},
	1114: {kind: resource.Timestamp, sql: "pg_catalog.timestamp"},
	1184: {kind: resource.TimestampTZ, sql: "pg_catalog.timestamptz"},
	1700: {kind: resource.Decimal, sql: "pg_catalog.numeric"},
	2950: {kind: resource.UUID, sql: "pg_catalog.uuid"},
}

// text writes the canonical text of an expression of the type, using only functions
// and operators of pg_catalog, with qualified names, whose results depend on no
// setting: triggers run it with the search path, DateStyle and TimeZone of the
// writer. It never fails, because that would fail the writer. Values that no path
// can express (infinities, years BC) also have a text: they may join.
func (t keyType) text(expression string) string {
	const pattern = `YYYY-MM-DD"T"HH24:MI:SS.US`
	switch t.kind {
	case resource.Bytes:
		return "pg_catalog.encode(" + expression + ", 'hex')"
	case resource.Decimal:
		return "pg_catalog.trim_scale(" + expression + ")::pg_catalog.text"
	case resource.Date:
		// to_json writes ISO 8601 under every DateStyle. to_char would first
		// make a timestamp, which has fewer years than a date.
		return `pg_catalog.btrim(pg_catalog.to_json((` + expression + `)::pg_catalog.date)::pg_catalog.text, '"')`
	case resource.Timestamp:
		return timestampText("("+expression+")::pg_catalog.timestamp", pattern)
	case resource.TimestampTZ:
		return timestampText("pg_catalog.timezone('UTC', ("+expression+")::pg_catalog.timestamptz)", pattern+`"Z"`)
	default:
		return "(" + expression + ")::pg_catalog.text"
	}
}

// timestampText formats a timestamp. to_char formats years BC without a sign,
// hence the second pattern, and returns NULL for infinities.
func timestampText(expression, pattern string) string {
	return "coalesce(pg_catalog.to_char(" + expression + ", CASE WHEN " + expression +
		" OPERATOR(pg_catalog.<) '0001-01-01'::pg_catalog.timestamp THEN '" + pattern + " BC' ELSE '" + pattern + "' END), (" +
		expression + ")::pg_catalog.text)"
}

// anyText writes the same text, in a form that PostgreSQL accepts for any type of the
// expression: a trigger must not fail its writers after the type of a column has
// changed. It only uses conversions to text and functions of any type. For a value of
// another type the result is some text.
func (t keyType) anyText(expression string) string {
	text := "(" + expression + ")::pg_catalog.text"
	// ISO 8601 under every DateStyle, with the offset of any TimeZone.
	moment := "pg_catalog.btrim(pg_catalog.to_json(" + expression + `)::pg_catalog.text, '"')`
	typed := func(name, canonical string) string {
		// COALESCE with a NULL of no type makes a domain its base type.
		return "CASE WHEN pg_catalog.pg_typeof(COALESCE(" + expression + ", NULL)) OPERATOR(pg_catalog.=) " + quoteText(name) +
			"::pg_catalog.regtype THEN " + canonical + " ELSE " + text + " END"
	}
	switch t.kind {
	case resource.Bytes:
		return typed(t.sql, t.text(text+"::pg_catalog.bytea")) // reads both forms of bytea_output
	case resource.Decimal:
		return "CASE WHEN pg_catalog.strpos(" + text + ", '.') OPERATOR(pg_catalog.>) 0 THEN pg_catalog.rtrim(pg_catalog.rtrim(" +
			text + ", '0'), '.') ELSE " + text + " END"
	case resource.Date:
		return moment
	case resource.Timestamp, resource.TimestampTZ:
		return typed(t.sql, t.text(moment+"::"+t.sql))
	default:
		return t.text(expression)
	}
}

// value writes the value of the type that a recorded text represents, or NULL if it
// represents none: for a number that is out of range, and for a text that was
// recorded when the column had another type, or that was forged. Nothing in the
// change table may fail the stream. The conditions are nested because SQL does not
// guarantee an order inside an AND.
func (t keyType) value(text string) string {
	const day = "-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
	const clock = `T([01][0-9]|2[0-3])(:[0-5][0-9]){2}\.[0-9]{6}`
	switch t.kind {
	case resource.Boolean:
		return whenMatches(text, "true|false", text+"::pg_catalog.bool")
	case resource.Bytes:
		return whenMatches(text, "([0-9a-f]{2})*", "pg_catalog.decode("+text+", 'hex')")
	case resource.Integer:
		return whenMatches(text, "-?[0-9]{1,19}", when(
			fitsInt8(text+"::pg_catalog.numeric"), text+"::pg_catalog.int8"))
	case resource.Decimal:
		// The limits are those of numeric itself.
		return whenMatches(text, `-?[0-9]+(\.[0-9]+)?|NaN|-?Infinity`, when(
			"pg_catalog.length(pg_catalog.split_part("+text+", '.', 1)) OPERATOR(pg_catalog.<=) 131072 AND "+
				"pg_catalog.length(pg_catalog.split_part("+text+", '.', 2)) OPERATOR(pg_catalog.<=) 16383", text+"::pg_catalog.numeric"))
	case resource.UUID:
		return whenMatches(text, "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", text+"::pg_catalog.uuid")
	case resource.Date:
		return momentValue(text, "[0-9]{4,7}"+day+"( BC)?", "pg_catalog.date", 5874897)
	case resource.Timestamp:
		return momentValue(text, "[0-9]{4,6}"+day+clock+"( BC)?", "pg_catalog.timestamp", 294276)
	case resource.TimestampTZ:
		return "pg_catalog.timezone('UTC', " +
			momentValue(text, "[0-9]{4,6}"+day+clock+"Z( BC)?", "pg_catalog.timestamp", 294276) + ")"
	default:
		if t.enum {
			return "(SELECT label FROM pg_catalog.unnest(pg_catalog.enum_range(NULL::" + t.sql + ")) AS label WHERE " +
				equal("label::pg_catalog.text", text) + ")"
		}
		return text + "::pg_catalog.text"
	}
}

// momentValue reads a date or a timestamp from the first of its month and the
// number of days: whatever the number, no cast can fail. maxYear is the last
// year of the type; both begin in 4714 BC, in the middle of the year.
func momentValue(text, pattern, sqlType string, maxYear int) string {
	first := "pg_catalog.regexp_replace(" + text + ", '^([0-9]+-[0-9]+)-[0-9]+', " + quoteText(`\1-01`) + ")::" + sqlType
	year := "pg_catalog.substring(" + text + ", '^[0-9]+')::pg_catalog.int4"
	days := "pg_catalog.substring(" + text + ", '^[0-9]+-[0-9]+-([0-9]+)')::pg_catalog.int4 OPERATOR(pg_catalog.-) 1"
	if sqlType == "pg_catalog.timestamp" {
		days = "pg_catalog.make_interval(days => " + days + ")"
	}
	return "CASE WHEN " + text + " OPERATOR(pg_catalog.=) ANY ('{infinity,-infinity}') THEN " + text + "::" + sqlType + " ELSE " +
		whenMatches(text, pattern, when(year+" OPERATOR(pg_catalog.>=) 1 AND "+year+" OPERATOR(pg_catalog.<=) CASE WHEN "+
			text+" OPERATOR(pg_catalog.~) 'BC$' THEN 4713 ELSE "+strconv.Itoa(maxYear)+" END", first+" OPERATOR(pg_catalog.+) ("+days+")")) + " END"
}

func when(condition, value string) string {
	return "CASE WHEN " + condition + " THEN " + value + " END"
}

func whenMatches(text, pattern, value string) string {
	return when(text+" OPERATOR(pg_catalog.~) "+quoteText("^("+pattern+")$"), value)
}

// parameter writes the value of a text that [resource.KeyColumn.Check] has
// accepted. A label that an enum does not have becomes NULL, and so a missing row.
func (t keyType) parameter(text string) string {
	switch {
	case t.kind == resource.Bytes:
		return "pg_catalog.decode(" + text + ", 'hex')"
	case t.enum:
		return t.value(text)
	default:
		return text + "::" + t.sql
	}
}

// keyText writes what a trigger records for columns, and a derivation returns for
// a key: the canonical text of a single column, a JSON array of the texts of
// several. Decoded by [decodeKey].
func keyText(types []keyType, expressions []string) string {
	if len(types) == 1 {
		return types[0].text(expressions[0])
	}
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = t.text(expressions[i])
	}
	return joinTexts(parts)
}

// joinTexts writes the key from the canonical texts of its columns.
func joinTexts(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "pg_catalog.json_build_array(" + strings.Join(texts, ", ") + ")::pg_catalog.text"
}

// recordedArray matches what keyText writes for several columns. A text of
// another form may be of an earlier declaration, and must not fail the stream.
const (
	recordedElement = `("([^"\\\x01-\x1f]|\\["\\/bfnrt]|\\u00(0[1-9a-f]|1[0-9a-f]))*"|null)`
	recordedArray   = `\[` + recordedElement + `(, ` + recordedElement + `)*\]`
)

// elementText writes the i-th of several texts that keyText recorded, or NULL if
// there is none.
func elementText(expression string, i int) string {
	return whenMatches(expression, recordedArray, "("+expression+")::pg_catalog.json OPERATOR(pg_catalog.->>) "+strconv.Itoa(i))
}

// keyValue writes the i-th of the typed values that the recorded text in
// expression represents, or NULL if there is none: the inverse of keyText.
func keyValue(types []keyType, expression string, i int) string {
	if len(types) == 1 {
		return types[0].value("(" + expression + ")")
	}
	return types[i].value("(" + elementText(expression, i) + ")")
}

// decodeKey turns what keyText wrote for the key of a document into its ID. ok is
// false if no path can name it: a NULL, an empty text, a date BC.
func decodeKey(columns []resource.KeyColumn, text string) (id string, ok bool) {
	if len(columns) == 1 {
		return text, columns[0].Check(text) == nil
	}
	var segments []*string
	if err := json.Unmarshal([]byte(text), &segments); err != nil || len(segments) != len(columns) {
		return "", false
	}
	canonical := make([]string, len(columns))
	for i, s := range segments {
		if s == nil || columns[i].Check(*s) != nil {
			return "", false
		}
		canonical[i] = *s
	}
	return resource.JoinID(canonical), true
}
