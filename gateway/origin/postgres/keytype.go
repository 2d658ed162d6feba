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
	// sql is the name of the type for a cast of a parameter or of a recorded
	// text, qualified.
	sql string
	// text writes the canonical text of an expression of the type, using
	// functions and casts of pg_catalog alone, by qualified names: triggers run
	// it with the search path of the writer.
	text func(expression string) string
}

// keyText writes what a trigger records for columns, and a derivation gives for
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
	return "pg_catalog.json_build_array(" + strings.Join(parts, ", ") + ")::pg_catalog.text"
}

// keyValue writes the i-th of the typed values that the recorded text in
// expression stands for: the inverse of keyText.
func keyValue(types []keyType, expression string, i int) string {
	if len(types) == 1 {
		return "(" + expression + ")::" + types[0].sql
	}
	return "((" + expression + ")::pg_catalog.json->>" + strconv.Itoa(i) + ")::" + types[i].sql
}

// decodeKey turns what keyText wrote for the key of a document into its ID. ok is
// false if no path can name it: a NULL, an empty text, a date before Christ.
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
