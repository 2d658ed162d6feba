// Package safefile decides by owner and mode whether a file or a directory can be trusted.
//
// A secret (a password, a key, a list of keys) must belong to this process's user or to root, and
// no other user may be able to write to it; otherwise it is refused. If others can read it, a
// warning says so. Others are all users except this one and root. There are two exceptions for the
// groups of this process. Their members may read a secret, because this is how root gives a file to
// a service and how Kubernetes gives one to a pod (fsGroup). They may also write to a file that
// belongs to root, with a warning, because Kubernetes gives every file of a writable volume such a
// mode.
//
// The checked file is always the one that was opened. Links are followed: Kubernetes mounts each
// secret as a link to a file below ..data, and replaces that link. A user who can change a link
// can at most choose among safe files.
//
// On systems without owners and modes as Unix has them, nothing is checked.
//
// Logs are opened here as well, because both logs of the gateway treat named pipes and torn lines
// the same way.
package safefile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Error says that a file or a directory is not safe to use.
type Error struct {
	Path  string
	Found string // owner and mode, or the kind of file
	Want  string
	Mend  string // the command that fixes it, or "" if there is none
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s is not safe to use: %s; expected %s", e.Path, e.Found, e.Want)
	if e.Mend != "" {
		text += ", try: " + e.Mend
	}
	return text
}

// About contains the owner and the mode of a file or a directory.
type About struct {
	UID, GID int
	Perm     fs.FileMode
	known    bool // false if the system has no such IDs
}

// Of returns the owner and the mode in info.
func Of(info fs.FileInfo) About { return about(info) }

// String returns owner, group and mode.
func (a About) String() string {
	return fmt.Sprintf("owner %d, group %d, mode %04o", a.UID, a.GID, a.Perm)
}

// Mine reports whether this process's effective user is the owner.
func (a About) Mine() bool { return !a.known || a.UID == os.Geteuid() }

// MineOrRoots reports whether this process's effective user, or root, is the owner.
func (a About) MineOrRoots() bool { return a.Mine() || a.UID == 0 }

// OthersWrite reports whether the mode lets the group or all users write.
func (a About) OthersWrite() bool { return a.known && a.Perm&0o022 != 0 }

// EverybodyWrites reports whether the mode lets all users write.
func (a About) EverybodyWrites() bool { return a.known && a.Perm&0o002 != 0 }

// inGroup reports whether this process is in the group.
func (a About) inGroup() bool {
	if a.GID == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, a.GID)
}

// CheckSecret checks an open file that holds a secret. The error is an [*Error]; the warning is a
// sentence, or "" if there is none.
func CheckSecret(path string, info fs.FileInfo) (warning string, err error) {
	a := Of(info)
	if !a.known {
		return "", nil
	}
	switch {
	case !a.MineOrRoots():
		return "", &Error{path, a.String(), fmt.Sprintf("a file of user %d or of root", os.Geteuid()),
			fmt.Sprintf("chown %d %s", os.Geteuid(), quoted(path))}
	case a.EverybodyWrites(), a.Perm&0o020 != 0 && (a.UID != 0 || !a.inGroup()):
		return "", &Error{path, a.String(), "a secret that no other user can write to", a.mend(path)}
	case a.Perm&0o020 != 0:
		return fmt.Sprintf("%s holds a secret and all members of group %d can change it (%v); try: %s", path, a.GID, a, a.mend(path)), nil
	case a.Perm&0o004 != 0, a.Perm&0o040 != 0 && !a.inGroup():
		return fmt.Sprintf("%s holds a secret and other users can read it (%v); try: %s", path, a, a.mend(path)), nil
	}
	return "", nil
}

// mend returns the command after which this process, and no other user, can read the secret.
func (a About) mend(path string) string {
	path = quoted(path)
	switch {
	case a.Mine():
		return "chmod 0600 " + path
	case a.inGroup():
		return "chmod 0640 " + path
	}
	return fmt.Sprintf("chgrp %d %s && chmod 0640 %s", os.Getegid(), path, path)
}

// quoted returns a path quoted for a shell.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\n'\"\\$`&;|<>()*?[]#~!{}") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// CheckDir checks that only this process's user or root can write to an open directory. The error
// is an [*Error].
func CheckDir(path string, info fs.FileInfo) error {
	a := Of(info)
	return a.checkDir(path, info.Mode(), a.MineOrRoots())
}

// CheckOwnDir is like CheckDir for a directory that this process's user must own, because root does
// not write to it.
func CheckOwnDir(path string, info fs.FileInfo) error {
	a := Of(info)
	return a.checkDir(path, info.Mode(), a.Mine())
}

func (a About) checkDir(path string, mode fs.FileMode, rightOwner bool) error {
	want := fmt.Sprintf("a directory of user %d that no other user can write to", os.Geteuid())
	switch {
	case !mode.IsDir():
		return &Error{path, "it is " + kind(mode), want, ""}
	case rightOwner && !a.OthersWrite():
		return nil
	}
	var commands []string
	if !rightOwner {
		commands = append(commands, fmt.Sprintf("chown %d %s", os.Geteuid(), quoted(path)))
	}
	if a.OthersWrite() {
		commands = append(commands, "chmod go-w "+quoted(path))
	}
	return &Error{path, a.String(), want, strings.Join(commands, " && ")}
}

// Secret is the content of a file that holds a secret.
type Secret struct {
	Data    []byte
	Info    fs.FileInfo // of the file that was read
	Warning string      // a sentence, or "" if there is none
}

// SizeError says that a file is larger than a secret of its kind can be.
type SizeError struct {
	Path string
	Most int64 // bytes
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.Path, e.Most)
}

// ReadSecret reads a regular file that holds a secret of at most the given number of bytes. The
// error is an [*Error] if the file is not safe or not regular, and a [*SizeError] if it is too
// large.
func ReadSecret(path string, most int64) (s Secret, err error) {
	f, err := openNow(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() {
		return s, &Error{path, "it is " + kind(info.Mode()), "a regular file", ""}
	}
	warning, err := CheckSecret(path, info)
	if err != nil {
		return s, err
	}
	data, err := ReadBounded(f, path, most)
	if err != nil {
		return s, err
	}
	return Secret{data, info, warning}, nil
}

// ReadBounded reads at most the given number of bytes of the file that path names. The error is a
// [*SizeError] if there are more.
func ReadBounded(from io.Reader, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &SizeError{path, most}
	}
	return data, nil
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a link"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	case 0:
		return "a regular file"
	}
	return "a device"
}

// CheckOwnFile checks a file that was found without following a link: it must be a regular file,
// and it must belong to this process's user unless anyOwner is true. The error is an [*Error]. The
// caller must check whether others can write to the file.
func CheckOwnFile(path string, info fs.FileInfo, anyOwner bool) error {
	a := Of(info)
	switch {
	case !info.Mode().IsRegular():
		return &Error{path, "it is " + kind(info.Mode()), "a regular file", ""}
	case !a.Mine() && !anyOwner:
		return &Error{path, a.String(), fmt.Sprintf("a file of user %d", os.Geteuid()), fmt.Sprintf("chown %d %s", os.Geteuid(), quoted(path))}
	}
	return nil
}
