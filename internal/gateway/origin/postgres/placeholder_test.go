package postgres

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestParametersAreFound(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"select $1", "select  (A) "},
		{"select $01", "select  (A) "},
		{"select $1$2", "select  (A)  (B) "},
		{"select 1$1", "select 1 (A) "},
		{"select $1;", "select  (A) "},
		{"select $1 ; ; -- ;\n /* ; */", "select  (A)  "},
		{"select a$1, $1", "select a$1,  (A) "},
		{"select é$1, $1", "select é$1,  (A) "},
		{"select '$1', $1", "select '$1',  (A) "},
		{"select 'a''$1', $1", "select 'a''$1',  (A) "},
		{`select 'a\', $1`, `select 'a\',  (A) `},
		{`select E'a\'$1', $1`, `select E'a\'$1',  (A) `},
		{`select e'a\\', $1`, `select e'a\\',  (A) `},
		{"select E'a' -- '\n 'b\\'$1', $1", "select E'a' -- '\n 'b\\'$1',  (A) "},
		{`select E'a' 'b\', $1`, `select E'a' 'b\',  (A) `},
		{`select typE'a\', $1`, `select typE'a\',  (A) `},
		{`select U&'\0024\', $1`, `select U&'\0024\',  (A) `},
		{`select u&"$1", $1`, `select u&"$1",  (A) `},
		{`select "a""$1", $1`, `select "a""$1",  (A) `},
		{`select "a\", $1`, `select "a\",  (A) `},
		{"select $$ $1 ' $$, $1", "select $$ $1 ' $$,  (A) "},
		{"select $a$ $1 $b$ $$ $a$, $1", "select $a$ $1 $b$ $$ $a$,  (A) "},
		{"select $a1$ $a$ $a1$, $1", "select $a1$ $a$ $a1$,  (A) "},
		{"select x$a$ $1, y$a$", "select x$a$  (A) , y$a$"},
		{"select $1 -- $2\n", "select  (A)  -- $2\n"},
		{"select $1 --\r, $2", "select  (A)  --\r,  (B) "},
		{"select /* /* $1 */ ' */ $1", "select /* /* $1 */ ' */  (A) "},
		{"select 1+--$1\n$1", "select 1+--$1\n (A) "},
		{"select 1*/*$1*/$1", "select 1*/*$1*/ (A) "},
		{"select 1 /*/ $1 /*/ $1 */*/ +$1", "select 1 /*/ $1 /*/ $1 */*/ + (A) "},
		{"/* a */ (( select $1))", "/* a */ (( select  (A) ))"},
		{"VALUES($1)", "VALUES( (A) )"},
	} {
		parameters := 1 + strings.Count(tt.want, "(B)")
		s, err := parseStatement(tt.sql, parameters)
		if err != nil {
			t.Errorf("%q: %v", tt.sql, err)
			continue
		}
		if got := s.with([]string{"A", "B"}); got != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.sql, got, tt.want)
		}
	}
}

// PostgreSQL 14 writes the name of the temporary schema, later versions pg_temp.
func TestReplaceParameter(t *testing.T) {
	const call = "pg_temp.slipstream_parameter_1()"
	for _, written := range []string{call, "pg_temp_4.slipstream_parameter_1()", "pg_temp_137.slipstream_parameter_1()"} {
		text := `SELECT %s, 'X', "X", pg_temp.slipstream_parameter_11() /* X */, xX, pg_tempo.slipstream_parameter_1(), %[1]s`
		text = strings.ReplaceAll(text, "X", written)
		got, err := replaceParameter(fmt.Sprintf(text, written), 0, "$1")
		if want := fmt.Sprintf(text, "$1"); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// FuzzParseStatement checks that no text makes the scanner fail other than
// with an error, and checks the guarantees for accepted text.
func FuzzParseStatement(f *testing.F) {
	for _, q := range goodQueries {
		f.Add(q.resource.Query.SQL)
	}
	for _, q := range refusedQueries {
		f.Add(q.resource.Query.SQL)
	}
	for _, pieces := range statementPieces {
		f.Add("select $1," + strings.Join(pieces, ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStatement(text, 1)
		if err != nil {
			return
		}
		var back strings.Builder
		for i, piece := range s.pieces {
			back.WriteString(piece)
			if i < len(s.parameters) {
				back.WriteString("$")
			}
		}
		// Only the digits of parameters, and what follows a semicolon, are missing.
		rest := text
		for piece := range strings.SplitSeq(back.String(), "$") {
			at := strings.Index(rest, piece)
			if at < 0 {
				t.Fatalf("%q: %q is not in %q", text, piece, rest)
			}
			rest = rest[at+len(piece):]
		}
		// It can be put between parentheses, and is one piece of code there.
		again := "select (\n" + s.with([]string{"$1"}) + "\n)"
		if _, err := parseStatement(again, 1); err != nil {
			t.Fatalf("%q between parentheses: %v", text, err)
		}
	})
}

// statementPieces are the pieces of random statements: one of each list in turn,
// so that most are nearly right.
var statementPieces = [][]string{
	{"$1", "$2", "$1::text", "'$1'", "'a''b'", `'a\'`, `E'a\'b'`, `e'\\'`, `E'\x41$1'`, `U&'\0041'`, "$$a$1$$", "$a$$$ $1 $b$ $a$", "$é$'$é$", "1", "1.5", "N'x'", "B'01'", "X'1f'",
		"(select $2)", `("x$1")`, "x$1", `"x""$1"`, "E'a'\n'b\\''", "'a'\n'b\\'", "E'a' -- '\n  '\\'$1'", "E'a' /* */ 'b\\'", "length('$2')", "array[$1, $2]", "-$1::int", "$1$2", "1$1", "$01", "null"},
	{" ", "", "\n", "\t", "\r", "\f", "-- $1 '\n", "/* $2 ' */", "/* /* */ $1 */", "/**/", "/*/ */*/ */", "--\r", "/***/", "/* */ */"},
	{",", "||", "+--$1\n", " , ", "*/*$2*/", "is not distinct from", "as \"$1\",", "as x$1,", "as $1,", ";", "::text,"},
	{" ", "", "\n"},
}

// TestReplacedStatementsMeanTheSame executes random statements with bound
// parameters, and with expressions in place of the parameters that parseStatement
// found.
func TestReplacedStatementsMeanTheSame(t *testing.T) {
	pg := testkit.StartPostgres(t, "log_min_messages=fatal")
	// PostgreSQL 14 reads $2from as two words. Later versions refuse it, and so does the
	// scanner.
	lenient := pg.Major(t) < 15
	conn, err := pgx.Connect(t.Context(), pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE named ("x$1" text, "x""$1" text, x text); INSERT INTO named VALUES ('a', 'b', 'c')`); err != nil {
		t.Fatal(err)
	}
	rnd := testkit.Rand(t)
	accepted := 0
	for range 6000 {
		text := randomStatement(rnd)
		want, err := execute(t, conn, text, "7", "it's $1 \\ \" $$")
		if err != nil {
			continue
		}
		s, err := parseStatement(text, want.parameters)
		if err != nil && lenient && strings.Contains(err.Error(), "letters follow") {
			continue
		}
		if err != nil {
			t.Fatalf("accepted by PostgreSQL with %d parameters, but: %v\n%q", want.parameters, err, text)
		}
		replaced := s.with([]string{"'7'::text", `'it''s $1 \ " $$'::text`})
		got, err := execute(t, conn, replaced)
		if err != nil || got.row != want.row {
			t.Fatalf("%q\nas %q\n got %q, %v\nwant %q", text, replaced, got.row, err, want.row)
		}
		accepted++
	}
	if accepted < 500 {
		t.Errorf("only %d of 6000 statements were compared", accepted)
	}
	t.Logf("%d statements compared", accepted)
}

func randomStatement(rnd *rand.Rand) string {
	var b strings.Builder
	b.WriteString([]string{"select ", "select($1),", "values ($2), (", "with x as (select $1) select "}[rnd.IntN(4)])
	for i := range 1 + rnd.IntN(4) {
		if i > 0 {
			b.WriteString(statementPieces[2][rnd.IntN(len(statementPieces[2]))])
		}
		b.WriteString(statementPieces[0][rnd.IntN(len(statementPieces[0]))])
		b.WriteString(statementPieces[1][rnd.IntN(len(statementPieces[1]))])
	}
	b.WriteString([]string{"", " from named", ")", ";", "; -- $1"}[rnd.IntN(5)])
	return b.String()
}

type executed struct {
	row        string
	parameters int
}

// execute prepares a statement, binds texts to its parameters and returns its
// rows. PostgreSQL refuses statements that skip a number, because it cannot know
// the type of such a parameter.
func execute(t *testing.T, conn *pgx.Conn, text string, arguments ...string) (executed, error) {
	t.Helper()
	described, err := conn.PgConn().Prepare(t.Context(), "", text, nil)
	if err != nil {
		return executed{}, err
	}
	values := make([][]byte, len(described.ParamOIDs))
	for i, oid := range described.ParamOIDs {
		const textOID = 25
		if i >= len(arguments) || oid != textOID {
			return executed{}, errors.New("another parameter")
		}
		values[i] = []byte(arguments[i])
	}
	// The unnamed statement is the one that was just described.
	result := conn.PgConn().ExecPrepared(t.Context(), "", values, nil, nil).Read()
	var b strings.Builder
	for _, row := range result.Rows {
		fmt.Fprintf(&b, "%q\n", row)
	}
	return executed{b.String(), len(values)}, result.Err
}
