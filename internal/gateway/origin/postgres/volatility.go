package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// ruleFacts are facts in the stored form of a view's query (pg_rewrite.ev_action)
// about what the query reads and calls.
type ruleFacts struct {
	relations []uint32
	functions []uint32
	operators []uint32
	// namedFunctions and namedOperators are those of them that the text names, so
	// that PostgreSQL looked them up: not the function of a cast, or the operator of
	// an ORDER BY.
	namedFunctions, namedOperators []uint32
	// unsteady are parts of the query, other than functions, that must not be
	// in a statement whose freshness is promised.
	unsteady []unsteadyPart
}

// unsteadyPart is named by a noun; why continues the message after "which".
type unsteadyPart struct{ name, why string }

// Fields of the nodes of a query that hold the oid of a function, and of an
// operator. pg_depend is not enough: it omits built-in objects.
var (
	functionFields = []string{":funcid", ":opfuncid", ":aggfnoid", ":winfnoid"}
	operatorFields = []string{":opno", ":eqop", ":sortop"}
)

// sqlValues are the SQLValueFunctionOp of src/include/nodes/primnodes.h.
var sqlValues = []string{
	"current_date", "current_time", "current_time", "current_timestamp", "current_timestamp",
	"localtime", "localtime", "localtimestamp", "localtimestamp",
	"current_role", "current_user", "user", "session_user", "current_catalog", "current_schema",
}

// parseRule reads the facts from the text of a rule. It examines every pair of
// adjacent tokens, whatever node they are in. Names that users chose cannot hide
// one: spaces, parentheses and braces in them are escaped with a backslash.
func parseRule(text string) *ruleFacts {
	facts := &ruleFacts{}
	tokens := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n()", r) })
	for i, t := range tokens {
		switch t {
		case "{TABLESAMPLECLAUSE":
			facts.add("TABLESAMPLE", "returns different rows each time")
		case "{ROWMARKCLAUSE":
			facts.add("FOR UPDATE or FOR SHARE", "would make writers wait for readers")
		case ":opnos": // of a comparison of rows: "(o 97 97)"
			for _, each := range tokens[min(i+2, len(tokens)):] {
				oid, err := strconv.ParseUint(each, 10, 32)
				if err != nil {
					break
				}
				facts.operators = appendNew(facts.operators, uint32(oid))
				facts.namedOperators = appendNew(facts.namedOperators, uint32(oid))
			}
		case "{NEXTVALUEEXPR":
			facts.add("the next value of a sequence", "is different each time")
		case "{COERCEVIAIO":
			if name := dateFromConstant(tokens[i:]); name != "" {
				facts.add("a text made a "+name, "would be another moment each time if it were 'now' or 'today': write "+name+" '...'")
			}
		}
		if i+1 == len(tokens) {
			break
		}
		number, err := strconv.ParseUint(strings.TrimRight(tokens[i+1], "}"), 10, 32)
		if err != nil || number == 0 && t != ":op" {
			continue
		}
		oid := uint32(number)
		switch {
		case t == ":relid":
			facts.relations = appendNew(facts.relations, oid)
		case slices.Contains(functionFields, t):
			facts.functions = appendNew(facts.functions, oid)
			if t == ":aggfnoid" || t == ":winfnoid" || t == ":funcid" && calledByName(tokens[i:]) {
				facts.namedFunctions = appendNew(facts.namedFunctions, oid)
			}
		case slices.Contains(operatorFields, t):
			facts.operators = appendNew(facts.operators, oid)
			if t == ":opno" {
				facts.namedOperators = appendNew(facts.namedOperators, oid)
			}
		case t == ":op" && i > 0 && tokens[i-1] == "{SQLVALUEFUNCTION":
			name := "a value of the session"
			if int(number) < len(sqlValues) {
				name = sqlValues[number]
			}
			facts.add(name, "changes without a change of any table: remove it")
		}
	}
	return facts
}

// calledByName reports whether the function call that the tokens begin in was written
// as one: COERCE_EXPLICIT_CALL of src/include/nodes/primnodes.h. The others are casts and
// syntax such as EXTRACT.
func calledByName(tokens []string) bool {
	at := slices.Index(tokens, ":funcformat")
	return at >= 0 && at+1 < len(tokens) && tokens[at+1] == "0"
}

func (f *ruleFacts) add(name, why string) {
	if part := (unsteadyPart{name, why}); !slices.Contains(f.unsteady, part) {
		f.unsteady = append(f.unsteady, part)
	}
}

// dateFromConstant returns the type of date that a conversion, which begins with
// the tokens, makes from a constant text: ('now'::text)::timestamptz. A literal
// 'now'::timestamptz does not count: it became a value when the statement was
// analyzed, and stays that value. A column with the text 'now' is not found.
func dateFromConstant(tokens []string) string {
	dates := map[string]string{"1082": "date", "1083": "time", "1114": "timestamp", "1184": "timestamptz", "1266": "timetz"}
	if len(tokens) < 3 || tokens[1] != ":arg" || tokens[2] != "{CONST" {
		return ""
	}
	for i, t := range tokens[:len(tokens)-1] {
		if t != ":resulttype" {
			continue
		}
		if name := dates[tokens[i+1]]; name != "" {
			return name
		}
		break
	}
	return ""
}

func appendNew(oids []uint32, oid uint32) []uint32 {
	if slices.Contains(oids, oid) {
		return oids
	}
	return append(oids, oid)
}

// function is what pg_proc says about a function that a statement calls.
type function struct {
	oid        uint32
	schema     string
	name       string
	arguments  string // types, in the form of oidvectortypes
	volatility string // pg_proc.provolatile: i, s, v
	// part is the aggregate that the function is a step of, else "".
	part string
}

func (f *function) builtin() bool { return f.schema == "pg_catalog" && f.oid < firstUserOID }

// firstUserOID is FirstNormalObjectId: what initdb made has a smaller oid.
const firstUserOID = 16384

func (f *function) String() string {
	signature := f.name + "(" + strings.ReplaceAll(f.arguments, `"any"`, "any") + ")"
	if f.schema != "pg_catalog" {
		signature = f.schema + "." + signature
	}
	if f.part != "" {
		signature += ", a step of the aggregate " + f.part
	}
	return signature
}

// unsteady returns why the result of the function may change without a change of
// its arguments, or "" if it cannot.
func (f *function) unsteady() string {
	switch {
	case f.volatility == "i":
		return ""
	case f.volatility == "s" && f.builtin() && harmless[f.name+"("+f.arguments+")"] != "":
		return ""
	case f.builtin() && f.volatility == "v":
		return "returns different results each time, or has side effects: remove it"
	case f.builtin():
		return "depends on the time, the session or the settings of the server: remove it"
	case f.volatility == "s":
		return "is declared STABLE, and what it reads is unknown: put its query into the statement, or declare it IMMUTABLE if its result depends only on its arguments"
	default:
		return "is declared VOLATILE: declare it IMMUTABLE if its result depends only on its arguments"
	}
}

// Why the stable functions of harmless may be called. PostgreSQL declares them
// stable because of settings; every connection of the gateway has the same.
const (
	// They call the output functions of their arguments' types, which depend on
	// TimeZone, DateStyle, extra_float_digits and the like.
	writesValues = "output of values, under settings that are the same on every connection"
	// They depend on TimeZone, which is UTC on every connection.
	readsTimeZone = "TimeZone is UTC on every connection"
	// They call input functions for the members of a document.
	readsValues = "input of values, under settings that are the same on every connection"
	// They depend on lc_numeric, lc_monetary and lc_time.
	readsLocale = "locale settings are the same on every connection"
	// A conversion between encodings is built in, or replaced by a superuser.
	convertsText = "conversions between encodings do not change"
)

// harmless are the stable functions of pg_catalog that a statement may call, by
// name and argument types in the form of oidvectortypes.
//
// Not here, among others: age(timestamptz), which counts from today;
// timezone(text, timetz), which uses today's offset; to_tsvector(text), which
// reads default_text_search_config and has a form with the configuration named;
// enum_range, which changes with ALTER TYPE; whatever reads catalogs.
var harmless = byReason(map[string][]string{
	writesValues: {
		"array_to_string(anyarray, text)", "array_to_string(anyarray, text, text)",
		"concat(\"any\")", "concat_ws(text, \"any\")", "format(text)", "format(text, \"any\")",
		"textanycat(text, anynonarray)", "anytextcat(anynonarray, text)",
		"quote_literal(anyelement)", "quote_nullable(anyelement)",
		"array_to_json(anyarray)", "array_to_json(anyarray, boolean)",
		"row_to_json(record)", "row_to_json(record, boolean)",
		"to_json(anyelement)", "to_jsonb(anyelement)",
		"json_build_array()", "json_build_array(\"any\")", "jsonb_build_array()", "jsonb_build_array(\"any\")",
		"json_build_object()", "json_build_object(\"any\")", "jsonb_build_object()", "jsonb_build_object(\"any\")",
		"json_agg(anyelement)", "jsonb_agg(anyelement)",
		// Their steps, which an aggregate of a user may have too.
		"json_agg_transfn(internal, anyelement)", "jsonb_agg_transfn(internal, anyelement)", "jsonb_agg_finalfn(internal)",
		"json_object_agg_transfn(internal, \"any\", \"any\")", "jsonb_object_agg_transfn(internal, \"any\", \"any\")", "jsonb_object_agg_finalfn(internal)",
		"json_agg_strict(anyelement)", "jsonb_agg_strict(anyelement)",
		"json_object_agg(\"any\", \"any\")", "jsonb_object_agg(\"any\", \"any\")",
		"json_object_agg_strict(\"any\", \"any\")", "jsonb_object_agg_strict(\"any\", \"any\")",
		"json_object_agg_unique(\"any\", \"any\")", "jsonb_object_agg_unique(\"any\", \"any\")",
		"json_object_agg_unique_strict(\"any\", \"any\")", "jsonb_object_agg_unique_strict(\"any\", \"any\")",
	},
	readsTimeZone: {
		"date_part(text, timestamp with time zone)", "extract(text, timestamp with time zone)",
		"date_trunc(text, timestamp with time zone)", "date_trunc(text, timestamp with time zone, text)",
		"timestamptz(date)", "timestamptz(timestamp without time zone)", "timestamptz(date, time without time zone)",
		"date(timestamp with time zone)", "time(timestamp with time zone)", "timestamp(timestamp with time zone)",
		"timetz(timestamp with time zone)",
		"timestamptz_pl_interval(timestamp with time zone, interval)", "timestamptz_mi_interval(timestamp with time zone, interval)",
		"interval_pl_timestamptz(interval, timestamp with time zone)",
		"in_range(timestamp with time zone, timestamp with time zone, interval, boolean, boolean)",
		"generate_series(timestamp with time zone, timestamp with time zone, interval)",
		"overlaps(timestamp with time zone, timestamp with time zone, timestamp with time zone, interval)",
		"overlaps(timestamp with time zone, interval, timestamp with time zone, interval)",
		"overlaps(timestamp with time zone, interval, timestamp with time zone, timestamp with time zone)",
		"make_timestamptz(integer, integer, integer, integer, integer, double precision)",
		"make_timestamptz(integer, integer, integer, integer, integer, double precision, text)",
		"to_timestamp(text, text)", "to_date(text, text)",
		"jsonb_path_exists_tz(jsonb, jsonpath, jsonb, boolean)", "jsonb_path_match_tz(jsonb, jsonpath, jsonb, boolean)",
		"jsonb_path_query_tz(jsonb, jsonpath, jsonb, boolean)", "jsonb_path_query_array_tz(jsonb, jsonpath, jsonb, boolean)",
		"jsonb_path_query_first_tz(jsonb, jsonpath, jsonb, boolean)",
		"date_lt_timestamptz(date, timestamp with time zone)", "date_le_timestamptz(date, timestamp with time zone)",
		"date_eq_timestamptz(date, timestamp with time zone)", "date_ne_timestamptz(date, timestamp with time zone)",
		"date_gt_timestamptz(date, timestamp with time zone)", "date_ge_timestamptz(date, timestamp with time zone)",
		"timestamptz_lt_date(timestamp with time zone, date)", "timestamptz_le_date(timestamp with time zone, date)",
		"timestamptz_eq_date(timestamp with time zone, date)", "timestamptz_ne_date(timestamp with time zone, date)",
		"timestamptz_gt_date(timestamp with time zone, date)", "timestamptz_ge_date(timestamp with time zone, date)",
		"timestamp_lt_timestamptz(timestamp without time zone, timestamp with time zone)", "timestamp_le_timestamptz(timestamp without time zone, timestamp with time zone)",
		"timestamp_eq_timestamptz(timestamp without time zone, timestamp with time zone)", "timestamp_ne_timestamptz(timestamp without time zone, timestamp with time zone)",
		"timestamp_gt_timestamptz(timestamp without time zone, timestamp with time zone)", "timestamp_ge_timestamptz(timestamp without time zone, timestamp with time zone)",
		"timestamptz_lt_timestamp(timestamp with time zone, timestamp without time zone)", "timestamptz_le_timestamp(timestamp with time zone, timestamp without time zone)",
		"timestamptz_eq_timestamp(timestamp with time zone, timestamp without time zone)", "timestamptz_ne_timestamp(timestamp with time zone, timestamp without time zone)",
		"timestamptz_gt_timestamp(timestamp with time zone, timestamp without time zone)", "timestamptz_ge_timestamp(timestamp with time zone, timestamp without time zone)",
	},
	readsValues: {
		"json_to_record(json)", "json_to_recordset(json)", "jsonb_to_record(jsonb)", "jsonb_to_recordset(jsonb)",
		"json_populate_record(anyelement, json, boolean)", "json_populate_recordset(anyelement, json, boolean)",
		"jsonb_populate_record(anyelement, jsonb)", "jsonb_populate_recordset(anyelement, jsonb)",
		"xml(text)", "xml_is_well_formed(text)",
	},
	readsLocale: {
		"to_char(numeric, text)", "to_char(integer, text)", "to_char(bigint, text)", "to_char(real, text)",
		"to_char(double precision, text)", "to_char(interval, text)", "to_char(timestamp without time zone, text)",
		"to_char(timestamp with time zone, text)", "to_number(text, text)",
		"numeric(money)", "money(numeric)", "money(integer)", "money(bigint)",
	},
	convertsText: {
		"convert(bytea, name, name)", "convert_from(bytea, name)", "convert_to(text, name)", "length(bytea, name)",
	},
})

// byReason turns the lists around: from the function to the reason.
func byReason(lists map[string][]string) map[string]string {
	reasons := make(map[string]string)
	for reason, signatures := range lists {
		for _, s := range signatures {
			reasons[s] = reason
		}
	}
	return reasons
}
