package postgres

import (
	"slices"
	"strings"
	"testing"
)

// Every function of the list must exist in the listed form, or the entry is dead;
// some exist only in later versions, and some are immutable in others.
func TestHarmlessFunctionsExist(t *testing.T) {
	conn := connectOrders(t)
	for signature, reason := range harmless {
		later := strings.HasSuffix(strings.SplitN(signature, "(", 2)[0], "_strict") || strings.Contains(signature, "_agg_unique")
		var volatility string
		err := conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(provolatile::text, ''), '') FROM pg_proc
			WHERE pronamespace = 'pg_catalog'::regnamespace AND proname || '(' || oidvectortypes(proargtypes) || ')' = $1`, signature).Scan(&volatility)
		if err != nil {
			t.Fatal(err)
		}
		if reason == "" || volatility != "s" && volatility != "i" && !(later && volatility == "") {
			t.Errorf("%s has volatility %q, reason %q", signature, volatility, reason)
		}
	}
	for _, name := range []string{"now", "age", "current_setting", "current_user", "pg_typeof", "enum_range", "to_tsvector", "to_regclass", "version", "timezone", "row_security_active", "statement_timestamp"} {
		for signature := range harmless {
			if strings.HasPrefix(signature, name+"(") {
				t.Errorf("%s is listed as harmless", signature)
			}
		}
	}
}

func TestParseRule(t *testing.T) {
	facts := parseRule(`({QUERY :rtable ({RANGETBLENTRY :alias {ALIAS :aliasname \{SQLVALUEFUNCTION\ :op :colnames ("x\ :funcid\ 7")} :rtekind 0 :relid 16402 :relkind r}
		{RANGETBLENTRY :rtekind 0 :relid 16402}) :quals {OPEXPR :opno 96 :opfuncid 65} {ROWCOMPAREEXPR :rctype 1 :opnos (o 97 98) :opfamilies (o 5)}
		{SQLVALUEFUNCTION :op 0 :type 1082} {SQLVALUEFUNCTION :op 99} {AGGREF :aggfnoid 2100} {WINDOWFUNC :winfnoid 3100} {FUNCEXPR :funcid 0}
		{COERCEVIAIO :arg {CONST :consttype 25 :constvalue 7 [ 1 2 ]} :resulttype 1184 :resultcollid 0} {COERCEVIAIO :arg {VAR :varno 1} :resulttype 1184 :resultcollid 0} {COERCEVIAIO :arg {CONST :consttype 25} :resulttype 23 :resultcollid 0}
		{SORTGROUPCLAUSE :eqop 91 :sortop 0} {CURIOUS :funcid`)
	if !slices.Equal(facts.relations, []uint32{16402}) || !slices.Equal(facts.functions, []uint32{65, 2100, 3100}) || !slices.Equal(facts.operators, []uint32{96, 97, 98, 91}) {
		t.Errorf("relations %v, functions %v, operators %v", facts.relations, facts.functions, facts.operators)
	}
	var names []string
	for _, u := range facts.unsteady {
		names = append(names, u.name)
	}
	if !slices.Equal(names, []string{"current_date", "a value of the session", "a text made a timestamptz"}) {
		t.Errorf("unsteady: %q", names)
	}
}

// The names of users cannot hide a call from the check.
func TestNamesHideNoCall(t *testing.T) {
	conn := connectOrders(t)
	for _, name := range []string{`:funcid 5`, `{CONST`, `\`, `x} :funcid`, `"(`, `:op 0 {SQLVALUEFUNCTION`, `)`, `é :relid`} {
		quoted := quoteName(name)
		r := query(`select `+quoted+`.id as `+quoted+`, json_build_array(random() = 1, 'x' as `+quoted+`) from customer as `+quoted+` where id = any($1)`, idKey, on("customer", "id"))
		r.Query.SQL = strings.Replace(r.Query.SQL, ` as `+quoted+`) from`, `) from`, 1)
		if problem := problemOf(t, resolveOne(t, conn, r)).Problem; !strings.Contains(problem, "calls random()") || strings.Contains(problem, "reads") {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
