package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
)

// redbotScript drives REDbot.
//
//go:embed redbot.py
var redbotScript string

// request is a request that REDbot sends, followed by similar ones with ranges, conditions and
// encodings.
type request struct {
	Name    string            `json:"name"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`

	// want is the expected status. A route with an unexpected response was not really checked.
	want int
}

// noted holds what REDbot reports for a request.
type noted struct {
	Name   string `json:"name"`
	Status int    `json:"status"`
	Notes  []struct {
		ID      string `json:"id"`
		Level   string `json:"level"`
		Summary string `json:"summary"`
	} `json:"notes"`
}

// redbot checks every kind of response.
func (t *tools) redbot(ctx context.Context, g *gateway) (verdict, error) {
	requests := requestsOf(g)
	text, err := json.Marshal(requests)
	if err != nil {
		return verdict{}, err
	}
	var stdout, stderr bytes.Buffer
	c := command(ctx, t.dir, filepath.Join(t.python, "python"), "-c", redbotScript)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(text), &stdout, &stderr
	if err := c.Run(); err != nil {
		return verdict{}, fmt.Errorf("redbot: %w\n%s", err, stderr.Bytes())
	}
	var results []noted
	if err := json.Unmarshal(stdout.Bytes(), &results); err != nil {
		return verdict{}, fmt.Errorf("redbot: %w in %.200q", err, stdout.Bytes())
	}
	return judgeNotes(requests, results)
}

// judgeNotes finds the notes that report a fault.
func judgeNotes(requests []request, results []noted) (verdict, error) {
	if len(results) != len(requests) {
		return verdict{}, fmt.Errorf("redbot: results of %d requests; expected %d", len(results), len(requests))
	}
	v := verdict{}
	levels := map[string]int{}
	for i, r := range results {
		if r.Status != requests[i].want {
			v.add(r.Name, "status", fmt.Sprintf("status %d; expected %d", r.Status, requests[i].want))
		}
		for _, n := range r.Notes {
			levels[n.Level]++
			if n.Level != "good" && n.Level != "info" {
				v.add(r.Name, n.ID, n.Level+": "+n.Summary)
			}
		}
	}
	v.looked = fmt.Sprintf("%d requests; notes: %d good, %d info, %d warning, %d bad", len(requests),
		levels["good"], levels["info"], levels["warning"], levels["bad"])
	return v, nil
}

// requestsOf returns requests for every kind of response, each with GET and HEAD, with and without
// another origin, and in every content coding.
func requestsOf(g *gateway) []request {
	key := map[string]string{"X-API-Key": g.apiKey}
	token := map[string]string{"Authorization": "Bearer " + g.token}
	forged := map[string]string{"Authorization": "Bearer " + g.token[:len(g.token)-4] + "AAAA"}
	batch := "/orders" + "?key=" + strings.Join([]string{"emea/17", "apac/1", "amer/9999"}, "&key=")
	var all []request
	for _, r := range []request{
		{Name: "document", URL: "/orders/emea/17", want: 200},
		{Name: "document by key", URL: "/depts/42", Headers: key, want: 200},
		{Name: "document by token", URL: "/depts/42", Headers: token, want: 200},
		{Name: "no credentials", URL: "/depts/42", want: 401},
		{Name: "wrong key", URL: "/depts/42", Headers: map[string]string{"X-API-Key": "slk_wrong"}, want: 401},
		{Name: "wrong token", URL: "/depts/42", Headers: forged, want: 401},
		{Name: "missing document", URL: "/orders/emea/99999", want: 404},
		{Name: "missing guarded document", URL: "/depts/99999", Headers: key, want: 404},
		{Name: "no such resource", URL: "/nothing/1", want: 404},
		{Name: "bad key", URL: "/orders/emea/x", want: 400},
		{Name: "batch", URL: batch, want: 200},
		{Name: "guarded batch", URL: "/depts?key=1&key=2&key=3", Headers: key, want: 200},
		{Name: "empty batch", URL: "/orders", want: 400},
		{Name: "description", URL: "/openapi.json", want: 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			all = append(all, varied(g, r, method, "", nil),
				varied(g, r, method, "for a page", map[string]string{"Origin": "https://app.example"}),
				varied(g, r, method, "for a page that may not", map[string]string{"Origin": "https://other.example"}),
				varied(g, r, method, "in gzip", map[string]string{"Accept-Encoding": "gzip"}))
		}
	}
	other := func(name, method, path string, want int, headers map[string]string) {
		all = append(all, varied(g, request{Name: name, URL: path, want: want}, method, "", headers))
	}
	other("options", "OPTIONS", "/orders/emea/17", 204, nil)
	other("preflight", "OPTIONS", "/depts/42", 204, map[string]string{
		"Origin": "https://app.example", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-api-key"})
	other("preflight of a page that may not", "OPTIONS", "/depts/42", 204, map[string]string{
		"Origin": "https://other.example", "Access-Control-Request-Method": "GET"})
	other("not modified", "GET", "/orders/emea/17", 304, map[string]string{"If-None-Match": "*"})
	other("precondition failed", "GET", "/orders/emea/17", 412, map[string]string{"If-Match": `"other"`})
	other("not acceptable", "GET", "/orders/emea/17", 406, map[string]string{"Accept-Encoding": "*;q=0"})
	other("writing", "POST", "/orders/emea/17", 405, nil)
	other("removing", "DELETE", "/orders/emea/17", 405, nil)
	return all
}

// varied returns the request with another method and additional header fields.
func varied(g *gateway, r request, method, how string, headers map[string]string) request {
	r.Name = strings.TrimSpace(method + " " + r.Name + " " + how)
	r.Method = method
	r.URL = g.url + r.URL
	all := maps.Clone(headers)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, r.Headers)
	r.Headers = all
	return r
}
