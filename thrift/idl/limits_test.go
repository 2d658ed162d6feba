package idl

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestErrorsAreBounded(t *testing.T) {
	for name, src := range map[string]string{
		"syntax":  strings.Repeat("struct {}\n", 5000),
		"types":   "struct A {\n" + strings.Repeat("T x\n", 5000) + "}",
		"strings": strings.Repeat("const string A = \"\\x\"\n", 5000),
		"values":  "const list<i32> A = [" + strings.Repeat("\"a\",\n", 5000) + "]",
		"tokens":  strings.Repeat("%\n", 5000),
	} {
		_, err := files{"a.thrift": src}.load("a.thrift")
		list, ok := err.(ErrorList)
		if !ok || len(list) != maxErrors+1 || list[maxErrors].Error() != "a.thrift: too many errors: only 100 are reported" {
			t.Errorf("%s: %d errors, the last one is %v", name, len(list), list[max(0, len(list)-1):])
		}
	}
	p, err := files{"a.thrift": "service S {" + strings.Repeat("async void f1();", 1) + "}\nstruct A {" + manyFields(500) + "}"}.load("a.thrift")
	if err != nil || len(p.Warnings) != maxErrors {
		t.Errorf("%d warnings, %v", len(p.Warnings), err)
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "i32 f%d\n", i)
	}
	return b.String()
}

func TestDepthIsBounded(t *testing.T) {
	nest := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	chain := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i, i+1)
		}
		return b.String()
	}
	backwards := func(first, format string, n int) string {
		var b strings.Builder
		b.WriteString(first + "\n")
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i+1, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, source string
		fits         bool
	}{
		{"types", "typedef " + nest("list<", "i32", ">", 99) + " A", true},
		{"types, too deep", "typedef " + nest("list<", "i32", ">", 20_000) + " A", false},
		{"keys", "typedef " + nest("map<", "i32", ",i32>", 20_000) + " A", false},
		{"values", "typedef list<A0> B\ntypedef i32 A0\nconst " + nest("list<", "i32", ">", 99) + " A = " + nest("[", "1", "]", 99), true},
		{"values, too deep", "const list<i32> A = " + nest("[", "1", "]", 20_000), false},
		{"maps, too deep", "const list<i32> A = " + nest("{1:", "1", "}", 20_000), false},
		{"open only", "const list<i32> A = " + strings.Repeat("[", 20_000), false},
		{"attributes", "struct A { " + nest("1: i32 a xsd_attrs {", "", "}", 20_000) + "}", false},
		{"parentheses", "struct A { 1: i32 a " + strings.Repeat("(", 20_000), false},
		{"typedefs", chain("typedef T%d T%d", 0) + backwards("typedef i32 T0", "typedef list<T%[2]d> T%[1]d", 40), true},
		{"typedefs, too deep", backwards("typedef i32 T0", "typedef T%[2]d T%[1]d", 20_000), false},
		{"typedefs, too deep to the front", chain("typedef list<T%[2]d> T%[1]d", 20_000) + "typedef i32 T20000", false},
		{"constants", backwards("const i32 C0 = 1", "const i32 C%d = C%d", 20_000), true},
		{"constants to the front", chain("const i32 C%d = C%d", 50) + "const i32 C50 = 1", true},
		{"constants, too deep to the front", chain("const i32 C%d = C%d", 20_000) + "const i32 C20000 = 1", false},
		{"services", backwards("service S0 {}", "service S%d extends S%d {}", 100), true},
		{"services, too deep", backwards("service S0 {}", "service S%d extends S%d {}", 20_000), false},
		{"services, too deep to the front", chain("service S%d extends S%d { void f() }", 20_000) + "service S20000 {}", false},
		{"structs that require each other", chain("struct S%d { 1: required S%d s }", 20_000) + "struct S20000 {}", true},
	} {
		start := time.Now()
		_, err := files{"a.thrift": c.source}.load("a.thrift")
		if (err == nil) != c.fits {
			text := fmt.Sprint(err)
			t.Errorf("%s: fits %v, %s", c.name, err == nil, text[:min(len(text), 500)])
		}
		if took := time.Since(start); took > 20*time.Second { // a quadratic algorithm takes minutes
			t.Errorf("%s: %v", c.name, took)
		}
	}
	long := files{}
	for i := range 200 {
		long[fmt.Sprintf("f%d.thrift", i)] = fmt.Sprintf("include \"f%d.thrift\"\nnamespace go n%d", i+1, i)
	}
	long["f200.thrift"] = ""
	_, err := long.load("f0.thrift")
	wantError(t, err, "f99.thrift:1:9: includes are nested more than 100 levels deep")
}

// Each of these sources would take quadratic time or more if names were searched linearly, or types
// were compared node by node.
func TestHostileFilesTakeLinearTime(t *testing.T) {
	const n = 20_000
	list := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	var twice strings.Builder
	twice.WriteString("typedef i32 A0\ntypedef i32 B0\n")
	for i := range 48 {
		fmt.Fprintf(&twice, "typedef map<A%[1]d,A%[1]d> A%[2]d\ntypedef map<B%[1]d,B%[1]d> B%[2]d\n", i, i+1)
	}
	twice.WriteString("const A48 A = {}\nconst B48 B = A\n")
	for name, src := range map[string]string{
		"values of enums":   "enum E {" + list("V%d ", n) + "}\nconst list<E> A = [" + strings.Repeat(fmt.Sprintf("E.V%d ", n-1), n) + "]",
		"numbers of enums":  "enum E {" + list("V%d ", n) + "}\nconst list<E> A = [" + strings.Repeat(fmt.Sprintf("%d ", n-1), n) + "]",
		"fields of structs": "struct S {" + list("i32 f%d ", n) + "}\nconst list<S> A = [" + strings.Repeat(fmt.Sprintf("{\"f%d\":1} ", n-1), n) + "]",
		"functions of base": "service B {" + list("void f%d() ", n) + "}\n" + list("service S%d extends B {}\n", n),
		"types that double": twice.String(),
		"same constant":     "const list<i32> C = [" + strings.Repeat("1 ", n) + "]\nconst list<list<i32>> A = [" + strings.Repeat("C ", n) + "]",
		"lines":             strings.Repeat("\n", 50*n) + "struct A { T x }" + strings.Repeat("\n", 50*n) + "struct B { T x }",
		"blanks":            strings.Repeat(" ", 50*n) + "struct A { T x }" + strings.Repeat("/**/ ", 10*n) + "struct B { T x }",
		"comments":          "struct A {" + strings.Repeat("/* a */", 20*n) + "}",
		"long name":         "struct A { 1: " + strings.Repeat("x", 50*n) + " a, 2: " + strings.Repeat("y.", 20*n) + "z b }",
	} {
		start := time.Now()
		_, err := files{"a.thrift": src}.load("a.thrift")
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if text := fmt.Sprint(err); len(text) > 20_000 {
			t.Errorf("%s: the error has %d bytes: %s", name, len(text), text[:200])
		}
	}
}

// dense contains the sources that need the most memory relative to their size.
var dense = map[string]string{
	"values":      "const list<i32> A = [" + strings.Repeat("1 ", 1<<16) + "]",
	"lists":       "const list<list<i32>> A = [" + strings.Repeat("[]", 1<<16) + "]",
	"maps":        "const list<map<i32,i32>> A = [" + strings.Repeat("{}", 1<<16) + "]",
	"fields":      "struct A {" + strings.Repeat("A a ", 1<<15) + "}",
	"enum values": "enum A {" + strings.Repeat("A ", 1<<16) + "}",
	"structs":     strings.Repeat("struct A{}", 1<<14),
	"functions":   "service A {" + strings.Repeat("A a()", 1<<15) + "}",
	"annotations": "struct A {}(" + strings.Repeat("a ", 1<<16) + ")",
	"includes":    strings.Repeat("include\"\"", 1<<14),
	"names":       "struct A {" + distinct(1<<15) + "}",
	"comments":    "struct A {" + strings.Repeat("#\n", 1<<16) + "}",
	"escapes":     "const string A = \"" + strings.Repeat("\\n", 1<<16) + "\"",
}

func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "A %c%s ", 'a'+i%26, fmt.Sprintf("%x", i/26))
	}
	return b.String()
}

// The maximum numbers of bytes that are allocated and retained for each byte of a source. Values
// are the worst case: two bytes of a source become 112 bytes, in a growing slice.
const maxAllocated, maxKept = 400, 100

func TestMemoryIsAMultipleOfTheSource(t *testing.T) {
	for name, src := range dense {
		var before, after, end runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f, _ := Parse("a.thrift", []byte(src))
		runtime.ReadMemStats(&after)
		runtime.GC()
		runtime.ReadMemStats(&end)
		allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(src))
		kept := (float64(end.HeapAlloc) - float64(before.HeapAlloc)) / float64(len(src))
		t.Logf("%-12s %4.0f bytes a byte, %4.0f of them are kept", name, allocated, kept)
		if allocated > maxAllocated || kept > maxKept {
			t.Errorf("%s: %.0f bytes for each byte of the source, %.0f of them are kept", name, allocated, kept)
		}
		runtime.KeepAlive(f)
	}
}

func TestSizeIsBounded(t *testing.T) {
	f := files{"a.thrift": "include \"b.thrift\"\n" + strings.Repeat("#\n", 100), "b.thrift": strings.Repeat("#\n", 100)}
	if _, err := Load(Config{ReadFile: f.read, MaxBytes: 450}, "a.thrift"); err != nil {
		t.Error(err)
	}
	_, err := Load(Config{ReadFile: f.read, MaxBytes: 350}, "a.thrift")
	wantError(t, err, "a.thrift:1:9: the files exceed the limit: only 131 bytes are left for b.thrift")
	_, err = Load(Config{ReadFile: f.read, MaxBytes: 100}, "a.thrift")
	wantError(t, err, "a.thrift: the files exceed the limit")

	var r report
	nodes := 1000
	f1 := parse("a.thrift", []byte("const list<i32> A = ["+strings.Repeat("1 ", 1000)+"]"), &r, &nodes, false)
	wantError(t, r.err([]*File{f1}), "more than 1000000 fields, types and values")
}

func TestFilesAreBounded(t *testing.T) {
	f := files{}
	var includes strings.Builder
	for i := range 9_999 { // With the file that includes them, there are 10,000 files.
		name := fmt.Sprintf("f%d.thrift", i)
		f[name] = ""
		fmt.Fprintf(&includes, "include %q\n", name)
	}
	f["all.thrift"], f["more.thrift"] = includes.String(), ""
	if _, err := Load(Config{ReadFile: f.read}, "all.thrift"); err != nil {
		t.Error(err)
	}
	f["all.thrift"] += "include \"more.thrift\"\n"
	_, err := Load(Config{ReadFile: f.read}, "all.thrift")
	wantError(t, err, "all.thrift:10000:9: more than 10000 files")
}
