package slipstream_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// releasePlatforms returns what make release builds for.
func releasePlatforms(t *testing.T) []string {
	t.Helper()
	m := regexp.MustCompile(`RELEASE_PLATFORMS:-([^}]+)}`).FindStringSubmatch(readText(t, "scripts/release.sh"))
	if m == nil {
		t.Fatal("scripts/release.sh names no platforms")
	}
	return strings.Fields(m[1])
}

func TestReleasePlatforms(t *testing.T) {
	platforms := releasePlatforms(t)
	for _, system := range []string{"linux", "darwin", "windows", "freebsd"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if !slices.Contains(platforms, system+"/"+arch) {
				t.Errorf("make release does not build %s/%s", system, arch)
			}
		}
		if !strings.Contains(regexp.MustCompile(`(?m)^PLATFORMS.*$`).FindString(readText(t, "Makefile")), system+"/") {
			t.Errorf("make check does not compile for %s", system)
		}
	}
}

// The container has the binary of the architecture that it is built for.
func TestContainerIsForItsArchitecture(t *testing.T) {
	file := readText(t, "deploy/Containerfile")
	if !regexp.MustCompile(`(?m)^ARG TARGETARCH$`).MatchString(file) {
		t.Error("deploy/Containerfile: TARGETARCH is not declared, or has a default, which BuildKit uses for every architecture")
	}
	if !strings.Contains(file, "\nCOPY dist/slipstream-linux-${TARGETARCH} /slipstream\n") {
		t.Error("deploy/Containerfile does not copy the binary of TARGETARCH")
	}
	final := file[strings.LastIndex(file, "\nFROM "):]
	for _, line := range strings.Split(file, "\n") {
		if strings.HasPrefix(line, "FROM ") && line != "FROM scratch" && !strings.Contains(line, "--platform=$BUILDPLATFORM ") {
			t.Errorf("deploy/Containerfile: %q needs an emulator to build for another architecture", line)
		}
	}
	if !strings.Contains(final, "\nUSER 65532:65532\n") || strings.Contains(final, "\nRUN ") {
		t.Error("deploy/Containerfile: the last stage runs a command, or does not set an unprivileged user")
	}
	ignored := readText(t, ".dockerignore")
	for _, p := range releasePlatforms(t) {
		if arch, ok := strings.CutPrefix(p, "linux/"); ok && !strings.Contains(ignored, "\n!dist/slipstream-linux-"+arch+"\n") {
			t.Errorf(".dockerignore hides the binary of %s", p)
		}
	}
}

// Restrictions that systemd must enforce on the service that packages install. make
// package-test has systemd look at the whole unit.
func TestUnitIsHardened(t *testing.T) {
	unit := readText(t, "deploy/package/slipstream.service")
	for _, want := range []string{
		"Type=notify", "User=slipstream", "ExecStart=/usr/bin/slipstream serve -c /etc/slipstream/slipstream.yaml", "NoNewPrivileges=yes",
		"CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes", "MemoryDenyWriteExecute=yes", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
		"SystemCallFilter=@system-service", "UMask=0077", "RestartPreventExitStatus=2",
	} {
		if !strings.Contains(unit, "\n"+want+"\n") {
			t.Errorf("the unit has no %s", want)
		}
	}
	for _, want := range []string{`(?m)^MemoryMax=\d+G$`, `(?m)^LimitNOFILE=\d+$`, `(?m)^TasksMax=\d+$`} {
		if !regexp.MustCompile(want).MatchString(unit) {
			t.Errorf("the unit has nothing that matches %s", want)
		}
	}
}

// Everything that packages consist of is in the directory, or made by scripts/release.sh.
func TestPackagesAreComplete(t *testing.T) {
	var file struct {
		Scripts  map[string]string
		Contents []struct{ Src, Dst, Type, Packager string }
	}
	if err := yaml.Unmarshal([]byte(readText(t, "deploy/package/nfpm.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	script := readText(t, "scripts/release.sh")
	var sources, targets []string
	for _, c := range file.Contents {
		sources = append(sources, c.Src)
		targets = append(targets, c.Dst)
		if strings.HasPrefix(c.Dst, "/etc/") != (c.Type == "config|noreplace") {
			t.Errorf("%s: an upgrade must leave what the user changed in /etc, and only that", c.Dst)
		}
	}
	for _, s := range file.Scripts {
		sources = append(sources, s)
	}
	for _, s := range sources {
		if _, err := os.Stat(filepath.Join("deploy/package", s)); err != nil && !strings.Contains(script, "/"+s) {
			t.Errorf("%s is not in deploy/package, and scripts/release.sh does not make it", s)
		}
	}
	for _, want := range []string{"/usr/bin/slipstream", "/usr/lib/systemd/system/slipstream.service", "/etc/slipstream/slipstream.yaml",
		"/usr/share/man/man1/slipstream.1.gz", "/usr/share/bash-completion/completions/slipstream", "/usr/share/doc/slipstream/copyright"} {
		if !slices.Contains(targets, want) {
			t.Errorf("packages do not install %s", want)
		}
	}
}

// A release is signed, with a verified signature, or says that it is not. A stand-in plays
// the role of minisign; make package-test uses the real one.
func TestReleaseIsSignedOrSaidNotToBe(t *testing.T) {
	const (
		signs = `case $4 in
-S) echo signature >"$8.minisig" ;;
-R) echo key >"$8" ;;
-V) grep -q signature "$9.minisig" ;;
esac`
		signsWrongly = `case $4 in
-S) echo nothing >"$8.minisig" ;;
-R) echo key >"$8" ;;
-V) grep -q signature "$9.minisig" ;;
esac`
		fails = "exit 1"
	)
	for _, c := range []struct {
		name, play, key string
		passes, signed  bool
		says            string
	}{
		{"no key", fails, "", true, false, "NOT SIGNED"},
		{"a key", signs, "secret", true, true, "public key key"},
		{"no signature", fails, "secret", false, false, ""},
		{"a signature that is worth nothing", signsWrongly, "secret", false, false, "NOT SIGNED"},
	} {
		folder := t.TempDir()
		program, file := filepath.Join(folder, "go"), filepath.Join(folder, "SHA256SUMS")
		for path, text := range map[string]string{program: "#!/bin/sh\n" + c.play + "\n", file: "sums\n", file + ".minisig": "of another release\n"} {
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "scripts/sign.sh", file, "v1.2.3")
		cmd.Env = append(os.Environ(), "GO="+program, "RELEASE_KEY="+c.key)
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		_, missing := os.Stat(file + ".minisig")
		if (err == nil) != c.passes || (missing == nil) != c.signed || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v, a signature is there: %t\n%s", c.name, err, missing == nil, out)
		}
	}
}
