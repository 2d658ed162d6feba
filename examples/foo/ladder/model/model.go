// Package model has the types of version 1.6, and the code that easyjson generates for them. They are apart from those of
// the other versions because the generated methods are found by encoding/json, too.
package model

//go:generate go run github.com/mailru/easyjson/easyjson model.go

// An Item is an object of a request.
//
//easyjson:json
type Item struct {
	A string `json:"srt_a"` // as the article spells it
	B string `json:"str_b"`
}

// A Request is the body of a request.
//
//easyjson:json
type Request []Item

// A Result is the body of an answer.
//
//easyjson:json
type Result struct {
	Hashes []string `json:"hashes"`
}
