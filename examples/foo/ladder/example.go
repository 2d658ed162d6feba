package ladder

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
)

// ExampleItems is the number of objects in the article's request.
const ExampleItems = 500

// exampleText is the length of each string in the article's request.
const exampleText = 50

// Example returns a request like the article's, and the answer to it: items objects with two
// strings of 50 random letters and digits. The first string of each has the name first, which is
// srt_a as the service expects it, or another name, which the service ignores.
func Example(seed uint64, items int, first string) (body, answer []byte) {
	rng := rand.New(rand.NewPCG(seed, 0))
	body, answer = append(body, '['), append(answer, `{"hashes":`...)
	between := "["
	for i := range items {
		if i > 0 {
			body = append(body, ',')
		}
		strs := [2][exampleText]byte{randomText(rng), randomText(rng)}
		body = append(body, `{"`+first+`":"`...)
		body = append(body, strs[0][:]...)
		body = append(body, `","str_b":"`...)
		body = append(body, strs[1][:]...)
		body = append(body, `"}`...)

		sha := sha256.New()
		if first == "srt_a" {
			sha.Write(strs[0][:])
		}
		sha.Write(strs[1][:])
		answer = append(answer, between+`"`...)
		answer = base64.StdEncoding.AppendEncode(answer, sha.Sum(nil))
		answer = append(answer, '"')
		between = ","
	}
	body = append(body, ']')
	if items == 0 {
		return body, append(answer, "null}"...)
	}
	return body, append(answer, "]}"...)
}

func randomText(rng *rand.Rand) (text [exampleText]byte) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for i := range text {
		text[i] = letters[rng.IntN(len(letters))]
	}
	return text
}
