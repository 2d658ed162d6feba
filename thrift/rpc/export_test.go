package rpc

// NewClientAt is NewClient with a clock for what servers are judged by.
var NewClientAt = newClient
