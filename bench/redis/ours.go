package main

// ourKinds are ours: none yet.
var ourKinds []kind
