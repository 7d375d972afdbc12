package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MustShim starts `mcp` as a host does, in a process of its own.
func MustShim(tb testing.TB, runtime string, env []string, args ...string) (host, *exec.Cmd) {
	tb.Helper()
	command := exec.Command(os.Args[0], append([]string{"mcp"}, args...)...)
	command.Env = append(os.Environ(), append(env, asServer+"=1", "XDG_RUNTIME_DIR="+runtime)...)
	var console bytes.Buffer
	command.Stderr = &console
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	session, err := client.Connect(tb.Context(), &sdk.CommandTransport{Command: command}, nil)
	if err != nil {
		tb.Fatalf("%v: %s", err, console.String())
	}
	tb.Cleanup(func() {
		_ = session.Close()
		if tb.Failed() {
			tb.Logf("mcp said: %s", console.String())
		}
	})
	return host{tb, session}, command
}

// The first host of a data directory starts the server, the next shares it, and takes
// over when the first is killed: nothing that was saved is lost.
func TestShimStartsAndTakesOver(t *testing.T) {
	t.Parallel()
	runtime, dir := t.TempDir(), t.TempDir()
	args := []string{"--data-dir", filepath.Join(dir, "store"), "--workspace", dir, "--agent", "anna"}
	first, process := MustShim(t, runtime, nil, args...)
	first.works("memory_save", object{"text": "the first host was here"}, nil)
	second, _ := MustShim(t, runtime, nil, args...)
	if text := second.works("memory_query", object{"query": "first host"}, nil); !strings.Contains(text, "was here") {
		t.Errorf("the second host finds %s", text)
	}
	must(t, process.Process.Kill())
	eventually(t, waitTime, func() error { // a call that was on its way is lost
		if text, failed := second.call("memory_query", object{"query": "first host"}); failed || !strings.Contains(text, "was here") {
			return fmt.Errorf("after the first host's end: %s", text)
		}
		return nil
	})
	second.works("tool_run", object{"name": "fs:write_file", "arguments": object{"path": "a.txt", "content": "x"}}, nil)
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil {
		t.Error(err)
	}
	folders, err := filepath.Glob(filepath.Join(runtime, "*"))
	must(t, err)
	if info, err := os.Stat(folders[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket lies in %v", info)
	}
}

// A host is led to a server that runs already, with its token.
func TestShimConnects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "callers.toml")
	must(t, os.WriteFile(file, []byte(credentialOf("one", `["anna"]`, "")), 0o600))
	p := MustRun(t, dir, "--credentials", file)
	with, _ := MustShim(t, dir, []string{envToken + "=one"}, "--addr", p.Address, "--agent", "anna")
	with.works("memory_save", object{"text": "x"}, nil)
	// Without a name it acts as the agent of its credential.
	named, _ := MustShim(t, dir, []string{envToken + "=one"}, "--addr", p.Address)
	var found struct{ Hits []struct{ Text string } }
	named.works("memory_query", object{"query": "x"}, &found)
	if len(found.Hits) != 1 {
		t.Errorf("anna's memory has %v", found)
	}
	without, _ := MustShim(t, dir, nil, "--addr", p.Address, "--agent", "anna")
	if text, failed := without.call("memory_query", object{"query": "x"}); !failed || !strings.HasPrefix(text, "UNAUTHENTICATED: ") {
		t.Errorf("without a token: %s", text)
	}
}

// A line that is no message is answered as JSON-RPC has it, and those behind it are answered, too.
func TestShimGoesOnBehindNoise(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	command := exec.CommandContext(t.Context(), os.Args[0], "mcp", "--addr", p.Address)
	command.Env = append(os.Environ(), asServer+"=1", "XDG_RUNTIME_DIR="+dir)
	in, err := command.StdinPipe() // stays open until all is answered, as a host's does
	must(t, err)
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	_, err = io.WriteString(in, "hello\n\n{}\n{\"jsonrpc\":\"2.0\"}\n7\n"+
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n{broken\n")
	must(t, err)
	var output string
	for lines := bufio.NewScanner(out); strings.Count(output, "\n") < 6 && lines.Scan(); {
		output += lines.Text() + "\n"
	}
	must(t, in.Close())
	must(t, command.Wait())
	for want, times := range map[string]int{`"id":1,`: 1, `"id":null`: 5, "-32700": 2, "-32600": 3} {
		if n := strings.Count(output, want); n != times {
			t.Errorf("%s is said %d times, not %d: %s", want, n, times, output)
		}
	}
}

// What can't work is said at once.
func TestShimErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	MustCertificate(t, dir, "server")
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"store in use", nil, []string{"--data-dir", filepath.Join(dir, "store"), "--workspace", dir}, "in use"},
		{"nobody there", nil, []string{"--addr", "127.0.0.1:1", "--server-ca", filepath.Join(dir, "server.pem")}, "no server answers"},
		{"token in the open", []string{envToken + "=one"}, []string{"--addr", "192.0.2.1:1"}, "plain text"},
		{"no authority", nil, []string{"--addr", p.Address, "--server-ca", "nowhere.pem"}, "--server-ca"},
	} {
		t.Run(test.name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], append([]string{"mcp"}, test.args...)...)
			command.Env = append(os.Environ(), append(test.env, asServer+"=1", "XDG_RUNTIME_DIR="+dir)...)
			in, err := command.StdinPipe() // stays open, as a host's does
			must(t, err)
			defer func() { _ = in.Close() }()
			output, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(output), test.want) {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}
