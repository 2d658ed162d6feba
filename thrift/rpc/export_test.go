package rpc

// NewClientAt is NewClient with a clock for the measurements of servers.
var NewClientAt = newClient
