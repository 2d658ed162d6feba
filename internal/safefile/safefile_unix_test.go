//go:build unix

package safefile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// childEnv makes the test binary a program that reads the files named by its arguments and prints
// the outcome for each.
const childEnv = "SLIPSTREAM_SAFEFILE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	said := make(map[string]outcome)
	for _, path := range os.Args[1:] {
		said[path] = read(path)
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// outcome is the outcome of reading a file.
type outcome struct{ Data, Warning, Error string }

func read(path string) outcome {
	s, err := ReadSecret(path, 16)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{string(s.Data), s.Warning, ""}
}

// folder creates a directory that every user can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipstream-safefile-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, path string, uid, gid int, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte("secret"), 0o600), os.Chown(path, uid, gid), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// judge fails the test unless the outcome has a refusal or a warning with the given words, or none
// where they are "".
func judge(t *testing.T, name string, got outcome, refusal, warning string) {
	t.Helper()
	ok := got.Error == "" && got.Data == "secret" && got.Warning == ""
	switch {
	case refusal != "":
		ok = strings.Contains(got.Error, refusal)
	case warning != "":
		ok = got.Error == "" && got.Data == "secret" && strings.Contains(got.Warning, warning)
	}
	if !ok {
		t.Errorf("%s: %+v; want refusal %q, warning %q", name, got, refusal, warning)
	}
}

// TestOwnSecrets contains the cases that need no other user.
func TestOwnSecrets(t *testing.T) {
	dir, uid, gid := folder(t), os.Geteuid(), os.Getegid()
	file := func(name string, mode fs.FileMode) string {
		return write(t, filepath.Join(dir, name), uid, gid, mode)
	}
	judge(t, "private", read(file("private", 0o600)), "", "")
	judge(t, "read-only", read(file("read-only", 0o400)), "", "")
	judge(t, "group reads", read(file("group", 0o640)), "", "")
	everybody := file("it's everybody's", 0o644)
	judge(t, "everybody reads", read(everybody), "", "mode 0644")
	judge(t, "a command", read(everybody), "", `try: chmod 0600 '`+strings.ReplaceAll(everybody, "'", `'\''`)+`'`)
	judge(t, "everybody writes", read(file("writes", 0o602)), "expected a secret that no other user can write to, try: chmod 0600", "")
	if uid != 0 {
		judge(t, "group writes", read(file("group writes", 0o660)), "that no other user can write to", "")
	}

	if err := os.Symlink(everybody, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	judge(t, "a link", read(filepath.Join(dir, "link")), "", "mode 0644") // the command changes the file, not the link
	judge(t, "a directory", read(dir), "it is a directory", "")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	judge(t, "a pipe", read(pipe), "it is a pipe", "") // and the check does not wait for a writer
	large := file("large", 0o600)
	if err := os.WriteFile(large, make([]byte, 17), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecret(large, 16); !errors.As(err, new(*SizeError)) {
		t.Errorf("17 bytes: %v", err)
	}
	if _, err := ReadSecret(filepath.Join(dir, "none"), 16); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestSecretsOfAService reads files in a process without privileges that is a member of a group, as
// a service or a pod is.
func TestSecretsOfAService(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can become another user")
		return
	}
	const (
		service, group   = 65534, 2000 // the user that reads, and its fsGroup
		stranger, others = 1000, 3000
	)
	dir := folder(t)
	// A link through ..data, as Kubernetes mounts a secret.
	data := filepath.Join(dir, "..2026_11_23")
	if err := errors.Join(os.Mkdir(data, 0o755), os.Symlink("..2026_11_23", filepath.Join(dir, "..data")),
		os.Symlink("..data/mounted", filepath.Join(dir, "mounted"))); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name             string
		uid, gid         int
		mode             fs.FileMode
		refusal, warning string
	}{
		{"own", service, service, 0o600, "", ""},
		{"own, its group reads", service, service, 0o640, "", ""},
		{"own, everybody reads", service, service, 0o644, "", "other users can read it"},
		{"own, another group reads", service, others, 0o640, "", "try: chmod 0600"},
		{"own, its group writes", service, service, 0o660, "that no other user can write to", ""},
		{"own, everybody writes", service, service, 0o666, "that no other user can write to", ""},
		{"root's, the group reads", 0, group, 0o440, "", ""},
		{"root's, the group reads and root writes", 0, group, 0o640, "", ""},
		{"root's, everybody reads", 0, 0, 0o644, "", "try: chgrp 65534 "},
		{"root's, another group", 0, others, 0o644, "", "other users can read it"},
		{"root's, the group reads, and everybody", 0, group, 0o644, "", "try: chmod 0640 "},
		// A writable volume with fsGroup: root has given the group write permission.
		{"root's, the group writes", 0, group, 0o660, "", "all members of group 2000 can change it"},
		{"root's, another group writes", 0, others, 0o664, "that no other user can write to", ""},
		{"root's, everybody writes", 0, group, 0o666, "that no other user can write to", ""},
		{"a stranger's", stranger, group, 0o640, "expected a file of user 65534 or of root, try: chown 65534 ", ""},
		{"a stranger's, everybody reads", stranger, stranger, 0o644, "owner 1000", ""},
		{"..data/mounted", 0, group, 0o440, "", ""},
	}
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "mounted"), filepath.Join(dir, "link")}
	for _, c := range cases {
		paths = append(paths, write(t, filepath.Join(dir, c.name), c.uid, c.gid, c.mode))
	}
	if err := os.Symlink(filepath.Join(dir, "a stranger's"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, paths...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, []string{childEnv + "=1"}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: service, Gid: service, Groups: []uint32{group}}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	var said map[string]outcome
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		judge(t, c.name, said[filepath.Join(dir, c.name)], c.refusal, c.warning)
	}
	judge(t, "a mounted secret", said[filepath.Join(dir, "mounted")], "", "")
	judge(t, "a link to a stranger's file", said[filepath.Join(dir, "link")], "owner 1000", "")
}
