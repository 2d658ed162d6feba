// Package model contains the types of version 1.6 and the code that easyjson generates for them.
// They are separate from the types of the other versions because encoding/json would also use the
// generated methods.
package model

//go:generate go run github.com/mailru/easyjson/easyjson model.go

// An Item is one object in a request.
//
//easyjson:json
type Item struct {
	A string `json:"srt_a"` // as spelled in the article
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
