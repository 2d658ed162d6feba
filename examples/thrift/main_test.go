package main

import (
	"os"
	"strings"
	"testing"
)

// TestOutputIsThatOfTheDocument: docs/THRIFT.md shows the output of the program.
func TestOutputIsThatOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/THRIFT.md")
	if err != nil {
		t.Fatal(err)
	}
	for range 30 { // the order of a map differs from run to run
		var out strings.Builder
		if err := run(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), out.String()) {
			t.Fatalf("docs/THRIFT.md does not contain this output:\n%s", out.String())
		}
	}
}

// TestDocumentShowsTheDeclarations: docs/THRIFT.md contains the IDL of the example.
func TestDocumentShowsTheDeclarations(t *testing.T) {
	idl, err := os.ReadFile("shop.thrift")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/THRIFT.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```thrift\n"+string(idl)+"```\n") {
		t.Error("docs/THRIFT.md does not contain the declarations of shop.thrift")
	}
}
