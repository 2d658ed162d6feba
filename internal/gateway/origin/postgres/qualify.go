package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pg_get_viewdef qualifies names that are not found along the search path, and
// pg_catalog is always in the path: it writes lower(x) and a = b for what the user
// wrote as pg_catalog.lower(x) and a OPERATOR(pg_catalog.=) b. Loads and derivations
// run with the path of the role, where another function may match better. So the
// missing names are put back.

// qualifier rewrites a statement as pg_get_viewdef writes it under the pinned path:
// unqualified names are those of pg_catalog, keywords that are followed by a
// parenthesis are in capitals, and operations are in parentheses.
type qualifier struct {
	tokens  []string // without white space
	blank   []bool   // white space precedes the token
	aliasOf []bool   // the token is in the column list of an alias
}

// qualified returns the statement with every function, operator, type and
// collation qualified. NULLIF, IS DISTINCT FROM, CASE with an operand and JOIN USING have
// no such spelling and stay unchanged.
func qualified(statement string) (string, error) {
	q := &qualifier{}
	scan := scanner{text: statement}
	blank := false
	for {
		t, err := scan.nextOperator()
		if err != nil {
			return "", err
		}
		if t.kind == tokenEnd {
			break
		}
		if t.kind == tokenBlank {
			blank = true
			continue
		}
		q.tokens, q.blank = append(q.tokens, statement[t.start:t.end]), append(q.blank, blank)
		blank = false
	}
	q.aliasOf = make([]bool, len(q.tokens))
	var b strings.Builder
	for i := 0; i < len(q.tokens); {
		if q.blank[i] {
			b.WriteByte(' ')
		}
		text, used := q.rewrite(i)
		b.WriteString(text)
		i += used
	}
	return b.String(), nil
}

// nextOperator is next, with the characters of an operator in one token.
func (s *scanner) nextOperator() (token, error) {
	const operator = "+-*/<>=~!@#%^&|`?"
	t, err := s.next()
	if err != nil || t.kind != tokenSymbol {
		return t, err
	}
	switch c := s.text[t.start]; {
	case strings.HasPrefix(s.text[t.start:], "::"):
		t.end++
	case strings.IndexByte(operator, c) >= 0:
		for t.end < len(s.text) && strings.IndexByte(operator, s.text[t.end]) >= 0 &&
			!strings.HasPrefix(s.text[t.end:], "--") && !strings.HasPrefix(s.text[t.end:], "/*") {
			t.end++
		}
	}
	s.at = t.end
	return t, nil
}

func (q *qualifier) at(i int) string {
	if i < 0 || i >= len(q.tokens) {
		return ""
	}
	return q.tokens[i]
}

// rewrite returns what to write for the tokens from i on, and for how many of them.
func (q *qualifier) rewrite(i int) (text string, used int) {
	t, before, after := q.at(i), q.at(i-1), q.at(i+1)
	switch {
	case t == "OPERATOR" && after == "(":
		end := q.closing(i + 1)
		return strings.Join(q.tokens[i:end+1], ""), end + 1 - i
	case t == "::":
		text, used = q.typeName(i + 1)
		return t + text, used + 1
	case isOperator(t) && t != "=>" && !(t == "*" && (before == "(" && after == ")" || before == ".")):
		return "OPERATOR(pg_catalog." + t + ")", 1
	case t == "IN" && after == "(" && slices.Contains([]string{"SELECT", "VALUES", "WITH"}, q.at(i+2)):
		return "OPERATOR(pg_catalog.=) ANY", 1
	case t == "COLLATE" && q.at(i+2) != ".":
		return "COLLATE pg_catalog." + after, 2
	case q.aliasOf[i]:
		// "name type" in the definition of the columns of a function.
		if isName(t) && (before == "(" || before == ",") && isName(after) {
			text, used = q.typeName(i + 1)
			return t + " " + text, used + 1
		}
		return t, 1
	case !isName(t) || after != "(" || q.blank[i+1] || before == ".":
		return t, 1
	case q.isAlias(i):
		for j := i + 2; j < q.closing(i+1); j++ {
			q.aliasOf[j] = true
		}
		return t, 1
	}
	return "pg_catalog." + t, 1
}

// isAlias reports whether the name at i, which a parenthesis follows, names a
// relation and its columns.
func (q *qualifier) isAlias(i int) bool {
	if before := q.at(i - 1); isName(before) || before == ")" || slices.Contains([]string{"AS", "WITH", "RECURSIVE", "ORDINALITY"}, before) {
		return true
	}
	// A further statement of WITH.
	end := q.closing(i + 1)
	return q.at(end+1) == "AS" && slices.Contains([]string{"(", "MATERIALIZED", "NOT"}, q.at(end+2))
}

// typeName rewrites the name of a type at i: the names that are keywords always
// mean the types of PostgreSQL.
func (q *qualifier) typeName(i int) (text string, used int) {
	keywords := []string{"bigint", "bit", "boolean", "char", "character", "decimal", "double", "float", "int", "integer",
		"interval", "national", "nchar", "numeric", "real", "smallint", "time", "timestamp", "varchar"}
	if t := q.at(i); isName(t) && q.at(i+1) != "." && !slices.Contains(keywords, t) {
		return "pg_catalog." + t, 1
	}
	end := i + 1
	for ; isName(q.at(end)) || q.at(end) == "."; end++ { // "double precision", "timestamp without time zone", "a.b"
	}
	if q.at(end) == "(" && !q.blank[end] {
		end = q.closing(end) + 1
		for ; isName(q.at(end)) && q.blank[end]; end++ { // "timestamp(3) without time zone"
		}
	}
	for j := i; j < end; j++ {
		if j > i && q.blank[j] {
			text += " "
		}
		text += q.at(j)
	}
	return text, end - i
}

// closing returns the index of the parenthesis that closes the one at i.
func (q *qualifier) closing(i int) int {
	depth := 0
	for j := i; j < len(q.tokens); j++ {
		switch q.tokens[j] {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(q.tokens) - 1
}

func isOperator(t string) bool { return strings.Trim(t, "+-*/<>=~!@#%^&|`?") == "" && t != "" }

// isName reports whether a token is a name: words in capitals are keywords, because
// a name with capitals is in quotes.
func isName(t string) bool {
	return t != "" && (t[0] == '"' || isWordStart(t[0]) && t != strings.ToUpper(t))
}

// sameQuery reports whether two statements mean the same to the database, however
// their functions and operators are spelled.
func sameQuery(ctx context.Context, tx pgx.Tx, columns int, statements ...string) (same bool, err error) {
	trees := make([]string, len(statements))
	err = undone(ctx, tx, func(tx pgx.Tx) error {
		for i, statement := range statements {
			view := fmt.Sprintf("slipstream_spelling_%d", i+1)
			if _, err := tx.Exec(ctx, "CREATE TEMPORARY VIEW "+view+" ("+strings.Join(viewColumns(columns), ", ")+") AS\n"+statement); err != nil {
				return err
			}
			var oid string
			if err := tx.QueryRow(ctx, `SELECT ev_class::pg_catalog.text, ev_action::pg_catalog.text FROM pg_catalog.pg_rewrite
				WHERE ev_class OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid`, "pg_temp."+view).Scan(&oid, &trees[i]); err != nil {
				return err
			}
			trees[i] = spelling.ReplaceAllString(trees[i], "")
			trees[i] = strings.NewReplacer(":relid "+oid+" ", ":relid 0 ", view, "").Replace(trees[i])
		}
		return nil
	})
	if err != nil {
		return false, statementError(err)
	}
	for _, tree := range trees {
		if tree != trees[0] {
			return false, nil
		}
	}
	return true, nil
}

// spelling is what a stored query reveals about how it was written.
var spelling = regexp.MustCompile(`:(location|stmt_location|stmt_len) -?[0-9]+|:operName \([^)]*\)`)
